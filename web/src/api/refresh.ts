/** Whatever follows the service: asked for again as soon as something happened. */

import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { onceQuiet, paced } from "@/parts/pace";

const EVERY_MS = 300;
/** The service may tell a score that is two seconds old while a job runs: the last word is fetched after that. */
export const SETTLED_MS = 2_300;

/** With `settleMs` it is asked for once more when it has been quiet for so long. */
export function useInvalidation(key: QueryKey, settleMs?: number): () => void {
  const queries = useQueryClient();
  return useMemo(() => {
    const refresh = paced(() => queries.invalidateQueries({ queryKey: key }), EVERY_MS);
    const settle = settleMs == null ? null : onceQuiet(refresh, settleMs);
    return () => {
      refresh();
      settle?.();
    };
    // Keys are made anew with every render; their text tells whether they are others.
  }, [queries, JSON.stringify(key), settleMs]);
}
