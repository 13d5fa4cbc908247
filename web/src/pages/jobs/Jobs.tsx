/** All jobs, newest first: how far they are, what came of them, what they cost. Select several to compare them. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { usePages } from "@/api/paging";
import { SETTLED_MS, useInvalidation } from "@/api/refresh";
import { Button, buttonLook } from "@/parts/Button";
import type { Column } from "@/parts/column";
import type { CsvColumn } from "@/parts/csv";
import { DataTable } from "@/parts/DataTable";
import { type Choice, Filters, useChosen } from "@/parts/Filters";
import { money } from "@/parts/format";
import { Elapsed, elapsed, Moment } from "@/parts/Moment";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { endedOf, Progress } from "@/parts/Progress";
import { RowLink } from "@/parts/RowLink";
import { SavedViews } from "@/parts/SavedViews";
import { type Line, Scores, scoresCell } from "@/parts/Score";
import { JobStatus } from "@/parts/State";
import { useTitle } from "@/parts/title";
import { TrySample } from "./TrySample";

type Job = Schemas["JobItem"];

const CHOICES: readonly Choice[] = [
  { name: "name", label: "Name" },
  { name: "task", label: "Task" },
  { name: "agent", label: "Agent" },
  { name: "model", label: "Model" },
  { name: "status", label: "Status", options: ["pending", "running", "completed", "cancelled"] },
];

const COLUMNS: Column<Job>[] = [
  {
    id: "id",
    name: "#",
    width: "3.5rem",
    align: "right",
    cell: (job) => (
      <RowLink to={`/jobs/${job.id}`} className="text-ink-soft">
        {job.id}
      </RowLink>
    ),
    value: (job) => job.id,
  },
  {
    id: "name",
    name: "Job",
    width: "minmax(9rem, 2fr)",
    cell: (job) => (
      <span className="font-medium" title={job.name}>
        {job.pinned ? (
          <>
            <span aria-hidden>★ </span>
            <span className="sr-only">pinned: </span>
          </>
        ) : null}
        {job.name}
      </span>
    ),
    value: (job) => job.name,
  },
  {
    id: "status",
    name: "Status",
    width: "7rem",
    cell: (job) => <JobStatus status={job.status} />,
    value: (job) => job.status,
  },
  {
    id: "progress",
    name: "Progress",
    width: "minmax(8rem, 0.8fr)",
    cell: (job) => <Progress counts={job.counts} />,
    value: (job) => endedOf(job.counts),
  },
  {
    id: "score",
    name: "Score",
    width: "17rem",
    cell: (job) => <Scores of={job.scores} />,
    value: (job) => job.scores?.[0]?.value,
  },
  {
    id: "errors",
    name: "Errors",
    width: "4rem",
    align: "right",
    cell: (job) => (job.counts.error ? <span className="text-error">{job.counts.error}</span> : "0"),
    value: (job) => job.counts.error,
  },
  {
    id: "agents",
    name: "Agents",
    width: "minmax(8rem, 1.5fr)",
    cell: (job) => <span title={job.agents.join("\n")}>{job.agents.join(", ")}</span>,
    value: (job) => job.agents.join("; "),
  },
  { id: "tasks", name: "Tasks", width: "3.5rem", align: "right", cell: (job) => job.tasks, value: (job) => job.tasks },
  {
    id: "cost",
    name: "Cost",
    width: "5rem",
    align: "right",
    cell: (job) => money(job.totals.cost_usd),
    value: (job) => job.totals.cost_usd,
  },
  {
    id: "time",
    name: "Time",
    width: "5.5rem",
    align: "right",
    cell: (job) => <Elapsed from={job.started_at} to={job.ended_at} />,
    value: (job) => elapsed(job.started_at, job.ended_at),
  },
  {
    id: "created",
    name: "Started",
    width: "6rem",
    align: "right",
    cell: (job) => <Moment at={job.created_at} />,
    value: (job) => job.created_at,
  },
];

const SCORES: CsvColumn<Job>[] = [
  { name: "Score", value: (job) => scoresCell(job.scores, (line) => line.value ?? "not scored") },
  { name: "95 % interval", value: (job) => scoresCell(job.scores, intervalOf) },
  { name: "Coverage", value: (job) => scoresCell(job.scores, (line) => line.coverage) },
  { name: "Score with errors as 0", value: (job) => scoresCell(job.scores, (line) => line.leaderboard) },
];

/** A file has the scores of all configurations. */
const CSV: CsvColumn<Job>[] = COLUMNS.flatMap((column) => (column.id === "score" ? SCORES : [column]));

function intervalOf({ low, high, no_interval }: Line): string | null | undefined {
  return low == null || high == null ? no_interval : `${low} to ${high}`;
}

const MOST_PINNED = 100;

export default function Jobs() {
  useTitle("Jobs");
  const filters = useChosen(CHOICES);
  const [selected, setSelected] = useState<ReadonlySet<string | number>>(new Set());
  const navigate = useNavigate();
  const jobs = usePages(
    ["jobs", filters],
    (page) =>
      unwrap(api.GET("/api/v1/jobs", { params: { query: { ...filters, ...page, include: ["score"] } as never } })),
    { shown: 50 },
  );
  const pinned = useQuery({
    queryKey: ["jobs", "pinned", filters],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/jobs", {
          params: { query: { ...filters, pinned: true, limit: MOST_PINNED, include: ["score"] } as never },
        }),
      ),
    placeholderData: (old) => old,
  });
  // Pinned jobs come first, however old they are.
  const rows = useMemo(() => {
    const first = pinned.data?.items ?? [];
    const known = new Set(first.map((job) => job.id));
    return first.length ? [...first, ...jobs.rows.filter((job) => !known.has(job.id))] : jobs.rows;
  }, [pinned.data, jobs.rows]);
  useLive(
    "/api/v1/events?kinds=job.created,job.cancelled,job.ended,trial.claimed,trial.ended,trial.retry",
    useInvalidation(["jobs"], SETTLED_MS),
  );

  function select(key: string | number, on: boolean) {
    setSelected((old) => {
      const next = new Set(old);
      if (on) next.add(key);
      else next.delete(key);
      return next;
    });
  }

  const chosen = [...selected].map(Number).sort((a, b) => a - b);
  // One job is enough if it has configurations to compare.
  const several = jobs.rows.some((job) => selected.has(job.id) && job.agents.length > 1);
  const comparable = chosen.length >= 2 || several;
  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-wrap items-center justify-between gap-3">
        <h1>Jobs</h1>
        <div className="flex gap-2">
          <Button
            disabled={!comparable}
            onClick={() => void navigate({ to: "/compare", search: { jobs: chosen.join(",") } as never })}
          >
            Compare{comparable ? ` ${chosen.length}` : ""}
          </Button>
          <Link to="/launch" className={buttonLook("main")}>
            Launch a job
          </Link>
        </div>
      </header>
      <Filters choices={CHOICES} />
      <SavedViews page="jobs" />
      <div className="rounded-lg border bg-panel">
        {jobs.error ? <Trouble error={jobs.error} retry={() => void jobs.refetch()} /> : null}
        {jobs.isPending || pinned.isPending ? (
          <Waiting />
        ) : (
          <DataTable
            name="jobs"
            rows={rows}
            columns={COLUMNS}
            rowKey={(job) => job.id}
            onEnd={jobs.more}
            whole={jobs.isWhole}
            all={jobs.all}
            csv={CSV}
            selected={selected}
            onSelect={select}
            onOpen={(job) => void navigate({ to: "/jobs/$job", params: { job: String(job.id) } })}
            empty={
              Object.keys(filters).length ? (
                <Empty>No job matches these filters.</Empty>
              ) : (
                <Empty action={<TrySample />}>
                  No job yet. A job runs tasks with agents, every attempt in its own sandbox, and keeps what happened.
                </Empty>
              )
            }
          />
        )}
      </div>
    </div>
  );
}
