/** Throughput, queue and cost over time, up to what the job says now, from the trials that ended last. Charts are a chunk of their own. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";

import { api, type Schemas, unwrap } from "@/api/client";

const PaceChart = lazy(() => import("./PaceChart"));
const SEEN = 500;

export function Pace({ job }: { job: Schemas["JobDetail"] }) {
  const trials = useQuery({
    queryKey: ["job", job.id, "pace"],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/jobs/{job_id}/trials", {
          params: { path: { job_id: job.id }, query: { state: ["ended"], limit: SEEN } as never },
        }),
      ),
    placeholderData: (old) => old,
  });
  const ended = (trials.data?.items ?? [])
    .filter((trial) => trial.ended_at && trial.reruns == null)
    .sort((a, b) => Date.parse(a.ended_at as string) - Date.parse(b.ended_at as string));
  if (ended.length < 2) return <p className="text-sm text-ink-soft">Appears once trials have ended.</p>;
  return (
    <Suspense fallback={<div className="h-28" />}>
      <PaceChart
        ended={ended.map((trial) => ({ at: Date.parse(trial.ended_at as string), cost: trial.spent.cost_usd ?? 0 }))}
        left={job.progress.planned - job.progress.ended}
        cost={job.totals.cost_usd ?? 0}
      />
    </Suspense>
  );
}
