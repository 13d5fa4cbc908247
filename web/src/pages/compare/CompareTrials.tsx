import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { FIELD } from "@/parts/field";
import { useFilters } from "@/parts/Filters";
import { configuration } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { StateLabel, statusOf } from "@/parts/State";
import { type Side, useSide } from "./side";
import { SideBySide } from "./SideBySide";

/** Two trials of one task: choose the other, then see what flipped and where they part. */
export function CompareTrials({ left, right }: { left: number; right: number | undefined }) {
  const [filters, setFilter] = useFilters();
  const [one, two] = [useSide(left), useSide(right)];
  const task = one.trial?.task.name;
  const others = useQuery({
    queryKey: ["trials", { task }],
    queryFn: () =>
      unwrap(api.GET("/api/v1/trials", { params: { query: { task, state: ["ended"], limit: 100 } as never } })),
    enabled: !!task,
  });
  if (one.error ?? two.error) return <Trouble error={one.error ?? two.error} />;
  if (!one.trial || (right && !two.trial)) return <Waiting rows={10} />;
  const listed = others.data?.items.filter((other) => other.id !== left) ?? [];
  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-col gap-2">
        <h1 className="break-words">Compare trials of {task}</h1>
        <div className="grid gap-2 text-sm md:grid-cols-2">
          <Named side={one} />
          {right ? <Named side={two} /> : null}
        </div>
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm">
          <label className="inline-flex max-w-full items-center gap-1.5 text-ink-soft">
            with
            <select
              className={`${FIELD} w-72 max-w-[calc(100vw-6rem)] text-ink`}
              value={right ?? ""}
              onChange={(event) => setFilter("right", event.target.value)}
            >
              <option value="">choose a trial</option>
              {right && !listed.some((other) => other.id === right) ? (
                <option value={right}>trial {right}</option>
              ) : null}
              {listed.map((other) => (
                <option key={other.id} value={other.id}>
                  trial {other.id}: {other.outcome}, {configuration(other)}, job {other.job_id}, attempt {other.repeat}
                </option>
              ))}
            </select>
          </label>
          {two.trial ? (
            <Link to="/compare" search={backTo(filters, one, two) as never} className="text-accent">
              Back to the comparison
            </Link>
          ) : null}
        </div>
      </header>
      {right ? (
        <SideBySide key={`${left} ${right}`} left={one} right={two} />
      ) : (
        <Empty>Choose a second trial of this task to see both side by side.</Empty>
      )}
    </div>
  );
}

/** As the comparison was, if somebody came from there; otherwise that of their jobs. */
function backTo(filters: Record<string, string>, one: Side, two: Side): Record<string, string | undefined> {
  const { jobs, baseline, pair, task } = filters;
  if (jobs) return { jobs, baseline, pair, task };
  return { jobs: [...new Set([one.trial?.job_id, two.trial?.job_id])].join(","), task: one.trial?.task.name };
}

function Named({ side }: { side: Side }) {
  const { trial, attempts } = side;
  if (!trial) return null;
  const number =
    trial.reruns != null ? `attempt ${trial.repeat}, added` : `attempt ${trial.repeat} of ${attempts ?? "…"}`;
  return (
    <div className="min-w-0 rounded-md border bg-panel px-3 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Link to="/trials/$trial" params={{ trial: String(trial.id) }} className="font-medium">
          trial {trial.id}
        </Link>
        <StateLabel of={statusOf(trial)} note={trial.reward != null ? `reward ${trial.reward}` : undefined} />
      </div>
      <div className="break-words text-ink-soft">
        <Link to="/jobs/$job" params={{ job: String(trial.job_id) }}>
          job {trial.job_id}
        </Link>{" "}
        · {configuration(trial)} · {number}
      </div>
    </div>
  );
}
