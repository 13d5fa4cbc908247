/** What a button does: one call, what came of it, and the lists that have to be asked for again. */

import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";

type Act = { busy: boolean; error: unknown; act: (call: () => Promise<unknown>) => Promise<boolean> };

/** `act` says whether it went well; what did not is in `error` until the next time. */
export function useAct(changes: QueryKey): Act {
  const queries = useQueryClient();
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({ busy: false, error: null });
  const act = useCallback(
    async (call: () => Promise<unknown>) => {
      setState({ busy: true, error: null });
      try {
        await call();
        await queries.invalidateQueries({ queryKey: changes });
        setState({ busy: false, error: null });
        return true;
      } catch (error) {
        setState({ busy: false, error });
        return false;
      }
    },
    [queries, JSON.stringify(changes)],
  );
  return { ...state, act };
}
