import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { FIELD } from "@/parts/field";
import { useFilters } from "@/parts/Filters";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { standing, StateLabel } from "@/parts/State";
import { Parting } from "./Parting";

/** Two trials of one task: choose the other, see the flips and where they part. */
export function CompareTrials({ left, right }: { left: number; right: number | undefined }) {
  const [, setFilter] = useFilters();
  const trial = useQuery({
    queryKey: ["trial", left],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}", { params: { path: { trial_id: left } } })),
  });
  const task = trial.data?.task.name;
  const others = useQuery({
    queryKey: ["trials", { task }],
    queryFn: () =>
      unwrap(api.GET("/api/v1/trials", { params: { query: { task, state: ["ended"], limit: 100 } as never } })),
    enabled: !!task,
  });
  if (trial.error) return <Trouble error={trial.error} />;
  if (!trial.data) return <Waiting />;
  return (
    <div className="flex flex-col gap-3">
      <h1>
        Compare trial{" "}
        <Link to="/trials/$trial" params={{ trial: String(left) }}>
          {left}
        </Link>{" "}
        of {task}
      </h1>
      <div className="flex flex-wrap items-center gap-3 text-sm">
        <StateLabel of={standing(trial.data)} note={trial.data.model ?? trial.data.agent} />
        <label>
          with{" "}
          <select
            className={`${FIELD} max-w-full`}
            value={right ?? ""}
            onChange={(event) => setFilter("right", event.target.value)}
          >
            <option value="">choose a trial</option>
            {others.data?.items
              .filter((other) => other.id !== left)
              .map((other) => (
                <option key={other.id} value={other.id}>
                  trial {other.id}: {other.outcome}, {other.model ?? other.agent}, job {other.job_id}
                </option>
              ))}
          </select>
        </label>
      </div>
      {right ? (
        <Panel title="First difference">
          <Parting left={left} right={right} />
        </Panel>
      ) : null}
    </div>
  );
}
