/** One job, live: the headline, every trial as a dot, errors by cause, the pace, and what can be done about it. */

import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { lazy, Suspense } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { duration } from "@/parts/format";
import { useFilters } from "@/parts/Filters";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { Progress } from "@/parts/Progress";
import { JobStatus } from "@/parts/State";
import { Tabs } from "@/parts/Tabs";
import { useTitle } from "@/parts/title";
import { Actions } from "./Actions";
import { Causes } from "./Causes";
import { Failures } from "./Failures";
import { GridView } from "./GridView";
import { Headline } from "./Headline";
import { Notices } from "./Notices";
import { Pace } from "./Pace";
import { useRefresh } from "./refresh";
import { SearchTrials } from "./SearchTrials";
import { Settled } from "./Settled";
import { SpecView } from "./SpecView";
import { TrialTable } from "./TrialTable";

const Pictures = lazy(() => import("./Pictures"));

/** Pace and time left change while nothing else happens. */
const PROGRESS_MS = 10_000;
/** So does what is spent: workers report it every second, in one sum for all trials. */
const SPENDING_MS = 2_000;

const pauseOf = (job: Schemas["JobDetail"]) =>
  job.counts.running && job.spec.agents.some((agent) => agent.model) ? SPENDING_MS : PROGRESS_MS;

export default function Job() {
  const id = Number(useParams({ strict: false }).job);
  const [filters, setFilter] = useFilters();
  const job = useQuery({
    queryKey: ["job", id],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: id } } })),
    refetchInterval: ({ state }) => (state.data && !state.data.ended_at ? pauseOf(state.data) : false),
  });
  const open = job.data ? !job.data.ended_at : true;
  const report = useQuery({
    queryKey: ["job", id, "report"],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}/report", { params: { path: { job_id: id } } })),
  });
  // Everybody's events, from now on: the job's own stream begins with its whole history, which may be a hundred thousand trials long.
  useLive(
    job.data && open
      ? "/api/v1/events?kinds=job.cancelled,job.trimmed,job.ended,trial.released,trial.claimed,trial.phase,trial.retry,trial.ended"
      : null,
    useRefresh(id, job.data?.counts.total ?? 0),
  );

  useTitle(job.data?.name, `job ${id}`);

  if (job.error) return <Trouble error={job.error} retry={() => void job.refetch()} />;
  if (!job.data) return <Waiting rows={10} />;
  const { counts, added } = job.data;
  const left = job.data.progress.seconds_left;
  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="min-w-0 truncate">
          <Link to="/jobs" className="font-normal text-ink-soft no-underline hover:underline">
            jobs
          </Link>{" "}
          / {job.data.name} <span className="font-normal text-ink-faint">#{id}</span>
        </h1>
        <JobStatus status={job.data.status} />
        <span className="w-56">
          <Progress counts={counts} />
        </span>
        {left != null ? <span className="text-sm text-ink-soft">about {duration(left)} left</span> : null}
        <span className="grow" />
        <Actions job={job.data} />
      </header>
      <Notices job={job.data} report={report.data} />
      {job.data.spec.until_settled ? <Settled report={report.data} /> : null}
      <Headline job={job.data} report={report.data} />
      <div className="grid gap-3 xl:grid-cols-[minmax(0,1fr)_20rem]">
        <GridView job={id} />
        <div className="flex flex-col gap-3">
          <Panel title="Errors by cause" minHeight={90}>
            <Causes report={report.data} />
          </Panel>
          <Panel title="Over time" minHeight={130}>
            <Pace job={job.data} />
          </Panel>
        </div>
      </div>
      <Panel flush>
        <Tabs
          label="Of this job"
          at={filters.tab ?? "trials"}
          onChange={(tab) => setFilter("tab", tab)}
          tabs={[
            {
              id: "trials",
              name: "Trials",
              content: <TrialTable job={id} total={counts.total + (added?.total ?? 0)} open={open} />,
            },
            { id: "failures", name: "Why trials failed", content: <Failures job={id} /> },
            {
              id: "pictures",
              name: "Pictures",
              content: (
                <Suspense fallback={<Waiting rows={12} />}>
                  <Pictures job={id} open={open} />
                </Suspense>
              ),
            },
            { id: "search", name: "Search", content: <SearchTrials job={id} /> },
            { id: "configuration", name: "Configuration", content: <SpecView spec={job.data.spec} /> },
          ]}
        />
      </Panel>
    </div>
  );
}
