/** The trials of a job as a list: filtered, sorted, walked by keyboard, saved as CSV. */

import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { usePages } from "@/api/paging";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { type Choice, Filters, useChosen } from "@/parts/Filters";
import { configuration, count, duration, money } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { RowLink } from "@/parts/RowLink";
import { standing, StateLabel } from "@/parts/State";

type Trial = Schemas["TrialItem"];

const CHOICES: readonly Choice[] = [
  { name: "task", label: "Task" },
  { name: "agent", label: "Agent" },
  { name: "model", label: "Model" },
  { name: "outcome", label: "Outcome", options: ["passed", "failed", "error", "cancelled"] },
  { name: "cause", label: "Cause", options: ["llm", "sandbox", "image", "verifier", "worker_lost", "agent"] },
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
    cell: (trial) => <StateLabel of={standing(trial)} note={trial.cause ?? trial.phase ?? undefined} />,
    value: (trial) => standing(trial),
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
    width: "4.5rem",
    align: "right",
    cell: (trial) => trial.repeat,
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
    cell: (trial) => duration(trial.seconds),
    value: (trial) => trial.seconds,
  },
  { id: "tokens", name: "Tokens", width: "5rem", align: "right", cell: (trial) => count(tokens(trial)), value: tokens },
  {
    id: "cost",
    name: "Cost",
    width: "5rem",
    align: "right",
    cell: (trial) => money(trial.cost_usd),
    value: (trial) => trial.cost_usd,
  },
];

function tokens(trial: Trial): number | null {
  return trial.input_tokens == null && trial.output_tokens == null
    ? null
    : (trial.input_tokens ?? 0) + (trial.output_tokens ?? 0);
}

export function TrialTable({ job, total }: { job: number; total: number }) {
  const navigate = useNavigate();
  const wanted = useChosen(CHOICES);
  const trials = usePages(["job", job, "trials", wanted], (page) =>
    unwrap(
      api.GET("/api/v1/jobs/{job_id}/trials", {
        params: { path: { job_id: job }, query: { ...wanted, ...page } as never },
      }),
    ),
  );
  const open = useCallback(
    (trial: Trial) => void navigate({ to: "/trials/$trial", params: { trial: String(trial.id) } }),
    [navigate],
  );
  return (
    <div>
      <div className="border-b px-3 py-2">
        <Filters choices={CHOICES} />
      </div>
      {trials.error ? <Trouble error={trials.error} retry={() => void trials.refetch()} /> : null}
      {trials.isPending ? (
        <Waiting />
      ) : (
        <DataTable
          name="trials"
          rows={trials.rows}
          columns={TRIAL_COLUMNS}
          rowKey={(trial) => trial.id}
          onEnd={trials.more}
          whole={trials.isWhole}
          all={trials.all}
          total={Object.keys(wanted).length ? undefined : total}
          height="34rem"
          onOpen={open}
          empty={<Empty>No trial matches these filters.</Empty>}
        />
      )}
    </div>
  );
}
