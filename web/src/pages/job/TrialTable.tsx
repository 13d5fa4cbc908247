/** The trials of a job as a list: filtered, sorted, walked by keyboard, saved as CSV. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { usePages } from "@/api/paging";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { type Choice, Filters, useChosen } from "@/parts/Filters";
import { configuration, count, duration, money } from "@/parts/format";
import { Elapsed, elapsed } from "@/parts/Moment";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { RowLink } from "@/parts/RowLink";
import { SavedViews } from "@/parts/SavedViews";
import { StateLabel, statusOf } from "@/parts/State";
import { triageColumn } from "./triageColumn";

type Trial = Schemas["TrialItem"];

const CHOICES: readonly Choice[] = [
  { name: "task", label: "Task" },
  { name: "agent", label: "Agent" },
  { name: "model", label: "Model" },
  { name: "outcome", label: "Outcome", options: ["passed", "failed", "error", "cancelled"] },
  { name: "cause", label: "Cause", options: ["llm", "sandbox", "image", "verifier", "worker_lost", "agent", "replay"] },
  { name: "tag", label: "Tag" },
  { name: "label", label: "Label" },
  { name: "reviewed", label: "Reviewed", options: ["true", "false"] },
  { name: "noted", label: "Notes", options: ["true", "false"] },
];

export const TRIAL_COLUMNS: Column<Trial>[] = [
  {
    id: "id",
    name: "Trial",
    width: "5rem",
    cell: (trial) => (
      <RowLink to={`/trials/${trial.id}`} className="text-ink-soft">
        {trial.id}
      </RowLink>
    ),
    value: (trial) => trial.id,
  },
  {
    id: "state",
    name: "State",
    width: "10rem",
    cell: (trial) => <StateLabel of={statusOf(trial)} note={trial.cause ?? trial.phase ?? undefined} />,
    value: (trial) => statusOf(trial),
  },
  {
    id: "task",
    name: "Task",
    width: "minmax(10rem, 2fr)",
    cell: (trial) => trial.task.name,
    value: (trial) => trial.task.name,
  },
  {
    id: "agent",
    name: "Agent / model",
    width: "minmax(10rem, 2fr)",
    cell: (trial) => <span title={configuration(trial)}>{configuration(trial)}</span>,
    value: configuration,
  },
  {
    id: "repeat",
    name: "Attempt",
    width: "6rem",
    align: "right",
    cell: (trial) => <AttemptNumber of={trial} />,
    value: (trial) => trial.repeat,
  },
  {
    id: "reward",
    name: "Reward",
    width: "4.5rem",
    align: "right",
    cell: (trial) => trial.reward ?? "–",
    value: (trial) => trial.reward,
  },
  {
    id: "marks",
    name: "Marks",
    width: "minmax(7rem, 1fr)",
    cell: (trial) => <span className="text-error">{trial.marks.join(", ").replaceAll("_", " ")}</span>,
    value: (trial) => trial.marks.join(" "),
  },
  {
    id: "seconds",
    name: "Time",
    width: "5.5rem",
    align: "right",
    cell: (trial) =>
      trial.state === "running" ? <Elapsed from={trial.started_at} to={null} /> : duration(trial.seconds),
    value: (trial) => (trial.state === "running" ? elapsed(trial.started_at, null) : trial.seconds),
  },
  {
    id: "tokens",
    name: "Tokens",
    width: "5rem",
    align: "right",
    cell: (trial) => <span title={overTries(trial)}>{count(tokens(trial))}</span>,
    value: tokens,
  },
  {
    id: "cost",
    name: "Cost",
    width: "5rem",
    align: "right",
    cell: (trial) => <span title={overTries(trial)}>{money(trial.spent.cost_usd)}</span>,
    value: (trial) => trial.spent.cost_usd,
  },
];

function tokens({ spent }: Trial): number | null {
  return spent.input_tokens == null && spent.output_tokens == null
    ? null
    : (spent.input_tokens ?? 0) + (spent.output_tokens ?? 0);
}

function overTries(trial: Trial): string | undefined {
  return trial.attempt > 1 ? `Over all ${trial.attempt} tries` : undefined;
}

function AttemptNumber({ of: { repeat, reruns } }: { of: Trial }) {
  if (reruns == null) return repeat;
  return (
    <span title={`Added after the planned attempts; not part of the score. It runs trial ${reruns} again.`}>
      <span className="text-ink-soft">added</span> {repeat}
    </span>
  );
}

/** The service lists no more at once. */
const MOST_RUNNING = 500;

/** What runs now comes first, wherever it is in the list. */
function useRunning(job: number, wanted: Record<string, string>, open: boolean) {
  const running = useQuery({
    queryKey: ["job", job, "running", wanted],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/jobs/{job_id}/trials", {
          params: { path: { job_id: job }, query: { ...wanted, state: ["running"], limit: MOST_RUNNING } as never },
        }),
      ),
    placeholderData: (old) => old,
    enabled: open,
  });
  return { running: (open && running.data?.items) || NONE, loading: running.isLoading };
}

const NONE: Trial[] = [];

function runningFirst(rows: Trial[]): Trial[] {
  const running = rows.filter((trial) => trial.state === "running");
  return running.length ? [...running, ...rows.filter((trial) => trial.state !== "running")] : rows;
}

/** With what people added, which is kept apart from results. */
function useTriageColumns(job: number): Column<Trial>[] {
  const triage = useQuery({
    queryKey: ["job", job, "triage"],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}/triage", { params: { path: { job_id: job } } })),
  });
  const items = triage.data?.items;
  return useMemo(() => [...TRIAL_COLUMNS, triageColumn(items ?? [])], [items]);
}

export function TrialTable({ job, total, open: isOpen }: { job: number; total: number; open: boolean }) {
  const navigate = useNavigate();
  const wanted = useChosen(CHOICES);
  const trials = usePages(["job", job, "trials", wanted], (page) =>
    unwrap(
      api.GET("/api/v1/jobs/{job_id}/trials", {
        params: { path: { job_id: job }, query: { ...wanted, ...page } as never },
      }),
    ),
  );
  const { running, loading } = useRunning(job, wanted, isOpen);
  const rows = useMemo(() => {
    const known = new Set(running.map((trial) => trial.id));
    return running.length ? [...running, ...trials.rows.filter((trial) => !known.has(trial.id))] : trials.rows;
  }, [running, trials.rows]);
  const columns = useTriageColumns(job);
  const open = useCallback(
    (trial: Trial) => void navigate({ to: "/trials/$trial", params: { trial: String(trial.id) } }),
    [navigate],
  );
  return (
    <div>
      <div className="flex flex-col gap-2 border-b px-3 py-2">
        <Filters choices={CHOICES} />
        <SavedViews page="trials" />
      </div>
      {trials.error ? <Trouble error={trials.error} retry={() => void trials.refetch()} /> : null}
      {trials.isPending || loading ? (
        <Waiting />
      ) : (
        <DataTable
          name="trials"
          rows={rows}
          columns={columns}
          rowKey={(trial) => trial.id}
          onEnd={trials.more}
          whole={trials.isWhole}
          all={(tell, signal) => trials.all(tell, signal).then(runningFirst)}
          total={Object.keys(wanted).length ? undefined : total}
          height="34rem"
          onOpen={open}
          empty={<Empty>No trial matches these filters.</Empty>}
        />
      )}
    </div>
  );
}
