import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, type Schemas, unwrap } from "@/api/client";
import { configuration } from "@/parts/format";
import { standing, StateLabel } from "@/parts/State";
import { Parting } from "./Parting";

/** The trials of one task in each job, and where two of them part: a pair that came out differently, if there is one. */
export function Pairs({ task, jobs, labels }: { task: string; jobs: number[]; labels: [string, string] }) {
  const found = useQueries({
    queries: jobs.map((job) => ({
      queryKey: ["job", job, "trials", { task }],
      queryFn: () =>
        unwrap(
          api.GET("/api/v1/jobs/{job_id}/trials", {
            params: { path: { job_id: job }, query: { task, limit: 50 } as never },
          }),
        ),
    })),
  });
  const [baseline = [], ...others] = found.map((query) =>
    (query.data?.items ?? []).filter((trial) => trial.state === "ended"),
  );
  const [left, right] = firstPair(labelled(baseline, labels[0]), labelled(others.flat(), labels[1]));
  return (
    <div className="border-t p-3">
      <h2 className="mb-2">{task}</h2>
      <div className="flex flex-wrap gap-6 text-sm">
        {found.map((query, index) => (
          <div key={jobs[index]}>
            <div className="text-ink-soft">job {jobs[index]}</div>
            {query.data?.items.map((trial) => (
              <Link
                key={trial.id}
                to="/trials/$trial"
                params={{ trial: String(trial.id) }}
                className="mr-3 inline-flex gap-1 no-underline hover:underline"
              >
                <StateLabel of={standing(trial)} note={`trial ${trial.id}`} />
              </Link>
            ))}
          </div>
        ))}
      </div>
      {left && right ? (
        <Parting left={left} right={right} />
      ) : (
        <p className="mt-3 text-sm text-ink-soft">One of the two has no ended trial of this task.</p>
      )}
    </div>
  );
}

type Trial = Schemas["TrialItem"];

/** Those of one configuration; all of them where no name tells configurations apart. */
function labelled(trials: Trial[], label: string): Trial[] {
  const mine = trials.filter((trial) => label.includes(configuration(trial)));
  return mine.length ? mine : trials;
}

function firstPair(lefts: Trial[], rights: Trial[]): [number | undefined, number | undefined] {
  for (const left of lefts) {
    const right = rights.find((other) => other.outcome !== left.outcome);
    if (right) return [left.id, right.id];
  }
  return [lefts[0]?.id, rights[0]?.id];
}
