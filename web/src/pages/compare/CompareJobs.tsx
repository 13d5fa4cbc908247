import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { Copy } from "@/parts/Copy";
import { FIELD } from "@/parts/field";
import { useFilters } from "@/parts/Filters";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Circumstances } from "./Circumstances";
import { Matrix } from "./Matrix";
import { Verdict } from "./Verdict";
import { MOST, sideName, useJobs, type Wish, wishOf } from "./wish";

/** More verdicts than this are folded below the matrix. */
const AT_TOP = 3;

/** Configurations of one job, or of several: verdicts, then every task, then what else differs. */
export function CompareJobs({ jobs }: { jobs: number[] }) {
  const [filters, setFilter] = useFilters();
  const named = useJobs(jobs);
  const found = named.flatMap(({ data }) => (data ? [data] : []));
  const wish = wishOf(jobs, filters.baseline, found);
  const result = useQuery({
    queryKey: ["compare", wish],
    queryFn: () => unwrap(api.GET("/api/v1/compare", { params: { query: wish as never } })),
    enabled: !!wish,
    placeholderData: (old) => old,
  });
  if (!jobs.length) return <NothingChosen />;
  const items = result.data?.items ?? [];
  const sides = found.flatMap((job) => job.agents.map((label) => ({ name: sideName(job.id, label), label, job })));
  const first = items[0];
  const baseline = filters.baseline ?? (first ? sideName(first.job_a, first.configuration_a) : "");
  return (
    <div className="flex flex-col gap-3">
      <header className="flex min-h-7 flex-wrap items-center gap-x-4 gap-y-2">
        <h1>Compare</h1>
        <span className="flex flex-wrap gap-x-3 text-sm text-ink-soft">
          {jobs.map((job, place) => (
            <Link key={job} to="/jobs/$job" params={{ job: String(job) }}>
              job {job}
              {named[place]?.data ? `: ${named[place].data.name}` : ""}
            </Link>
          ))}
        </span>
        <label className="inline-flex max-w-full items-center gap-1.5 text-sm text-ink-soft">
          baseline
          <select
            className={`${FIELD} w-72 max-w-[calc(100vw-8rem)] text-ink`}
            value={baseline}
            onChange={(event) => setFilter("baseline", event.target.value)}
          >
            {sides.map(({ name, label, job }) => (
              <option key={name} value={name}>
                {label}
                {jobs.length > 1 ? ` (job ${job.id})` : ""}
              </option>
            ))}
          </select>
        </label>
        <span className="grow" />
        {wish ? <Copy text={command(wish)}>Copy as CLI</Copy> : null}
      </header>
      {filters.baseline && sides.length > MOST + 1 ? (
        <p className="text-sm text-ink-soft">
          Only the first {MOST} of {sides.length - 1} others are compared with the baseline at once.
        </p>
      ) : null}
      {result.error ? <Trouble error={result.error} /> : null}
      {result.isPending && !result.error ? <Waiting rows={12} /> : null}
      {result.data && wish ? (
        <>
          {items.slice(0, AT_TOP).map((item, place) => (
            <Verdict key={place} item={item} />
          ))}
          <Matrix items={items} rows={result.data.matrix} jobs={jobs} />
          {items.length > AT_TOP ? (
            <details className="rounded-lg border bg-panel">
              <summary className="cursor-pointer px-3 py-2 text-sm">{items.length - AT_TOP} more pairs</summary>
              <div className="flex flex-col gap-3 p-3">
                {items.slice(AT_TOP).map((item, place) => (
                  <Verdict key={place} item={item} />
                ))}
              </div>
            </details>
          ) : null}
          <Circumstances wish={wish} />
        </>
      ) : null}
    </div>
  );
}

function NothingChosen() {
  return (
    <>
      <h1>Compare</h1>
      <Empty
        action={
          <Link to="/jobs" className="text-accent">
            Go to the jobs
          </Link>
        }
      >
        Choose two or more jobs in the list of jobs, or one with several configurations, then press Compare.
      </Empty>
    </>
  );
}

function command({ baseline, other }: Wish): string {
  const quoted = [baseline, ...other].map((side) =>
    /^[\w.:-]+$/.test(side) ? side : `'${side.replaceAll("'", `'\\''`)}'`,
  );
  return `seatrial compare ${quoted.join(" ")}`;
}
