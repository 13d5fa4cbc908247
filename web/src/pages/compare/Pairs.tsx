import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { standing, StateLabel } from "@/parts/State";
import { Parting } from "./Parting";

/** The trials of one task in each job, and where the first pair of them parts. */
export function Pairs({ task, jobs }: { task: string; jobs: number[] }) {
  const found = useQueries({
    queries: jobs.map((job) => ({
      queryKey: ["job", job, "trials", { task }],
      queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}/trials", { params: { path: { job_id: job }, query: { task, limit: 50 } as never } })),
    })),
  });
  const [left, right] = found.map((query) => query.data?.items[0]?.id);
  return (
    <div className="border-t p-3">
      <h2 className="mb-2">{task}</h2>
      <div className="flex flex-wrap gap-6 text-sm">
        {found.map((query, index) => (
          <div key={jobs[index]}>
            <div className="text-ink-soft">job {jobs[index]}</div>
            {query.data?.items.map((trial) => (
              <Link key={trial.id} to="/trials/$trial" params={{ trial: String(trial.id) }} className="mr-3 inline-flex gap-1 no-underline hover:underline"><StateLabel of={standing(trial)} note={`trial ${trial.id}`} /></Link>
            ))}
          </div>
        ))}
      </div>
      {left && right ? <Parting left={left} right={right} /> : null}
    </div>
  );
}
