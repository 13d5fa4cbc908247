/** Keeps a job's page as it is while events come in: what is cheap at once, what is long only as far as it changed. */

import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { type LiveEvent, OPENED } from "@/api/live";
import { usePatch } from "@/api/paging";
import { SETTLED_MS } from "@/api/refresh";
import { onceQuiet, paced } from "@/parts/pace";

type Trial = Schemas["TrialItem"];

const SOON_MS = 300;
/** Report and grid are made from every trial of the job: a large one is not worked out anew for each of them. */
const [LARGE, LATER_MS] = [2_000, 2_500];
const FETCHED_ONE_BY_ONE = 30;
const SUMMARIES = ["report", "grid", "pace", "failures"];

const idOf = (trial: Trial) => trial.id;

export function useRefresh(job: number, total: number): (event: LiveEvent) => void {
  const queries = useQueryClient();
  const key = useMemo(() => ["job", job, "trials"], [job]);
  const patch = usePatch<Trial>(key, idOf);
  const large = total > LARGE;
  return useMemo(() => {
    const changed = new Set<number>();
    const headline = () => queries.invalidateQueries({ queryKey: ["job", job], exact: true });
    const soon = paced(() => {
      const ids = [...changed];
      changed.clear();
      const few = pagesOf(queries, key) > 2 && ids.length <= FETCHED_ONE_BY_ONE;
      return Promise.all([
        headline(),
        queries.invalidateQueries({ queryKey: ["job", job, "running"] }),
        few ? Promise.all(ids.map(fetchTrial)).then(patch) : queries.invalidateQueries({ queryKey: key }),
      ]);
    }, SOON_MS);
    const later = paced(
      () => Promise.all(SUMMARIES.map((name) => queries.invalidateQueries({ queryKey: ["job", job, name] }))),
      large ? LATER_MS : SOON_MS,
    );
    const settle = onceQuiet(() => void headline(), SETTLED_MS);
    return (event: LiveEvent) => {
      if (event.job !== job && event.kind !== OPENED) return;
      if (event.trial != null) changed.add(event.trial);
      soon();
      later();
      settle();
    };
  }, [queries, job, key, patch, large]);
}

function pagesOf(queries: QueryClient, key: string[] | (string | number)[]): number {
  return Math.max(
    0,
    ...queries.getQueriesData<InfiniteData<unknown>>({ queryKey: key }).map(([, data]) => data?.pages?.length ?? 0),
  );
}

async function fetchTrial(id: number): Promise<Trial> {
  const {
    result,
    agent_spec: _spec,
    attempts: _attempts,
    ...trial
  } = await unwrap(api.GET("/api/v1/trials/{trial_id}", { params: { path: { trial_id: id } } }));
  return {
    ...trial,
    marks: result?.marks ?? [],
    seconds: result?.seconds ?? null,
    input_tokens: result?.usage.input_tokens ?? null,
    output_tokens: result?.usage.output_tokens ?? null,
    cost_usd: result?.usage.cost_usd ?? null,
    suffered: result?.suffered ?? { throttled_sec: null, memory_pressure: null, model_wait_sec: null, pace_wait_sec: null },
  };
}
