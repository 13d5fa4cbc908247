/** What a try left behind, by name: the page asks for nothing that is not there. */

import { useQuery } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { encodedPath } from "@/parts/FileBrowser";

/** One try of a trial: the chosen one, or the last. `tries` tells the last one of today from that of yesterday. */
export type Try = { trial: number; tryNumber: number | undefined; tries: number };

/** What an ended try left never changes, so events that concern the trial do not concern it; and it is never shown as another try's. */
export const keyOf = ({ trial, tryNumber, tries }: Try, what: string) => [
  "kept",
  trial,
  what,
  tryNumber ?? `last of ${tries}`,
];

export function useFiles(of: Try, enabled: boolean) {
  return useQuery({
    queryKey: keyOf(of, "files"),
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/trials/{trial_id}/files", {
          params: { path: { trial_id: of.trial }, query: { attempt: of.tryNumber } as never },
        }),
      ),
    enabled,
    staleTime: Infinity,
  });
}

export function fileUrl(trial: number, path: string, tryNumber: number): string {
  return `/api/v1/trials/${trial}/files/${encodedPath(path)}?attempt=${tryNumber}`;
}
