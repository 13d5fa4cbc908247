import type { Schemas } from "@/api/client";
import type { Column } from "@/parts/column";
import { configuration } from "@/parts/format";
import { Moment } from "@/parts/Moment";
import { RowLink } from "@/parts/RowLink";
import { shortName } from "./workerColumns";

type Trial = Schemas["RunningTrial"];

export const RUNNING_COLUMNS: Column<Trial>[] = [
  {
    id: "id",
    name: "Trial",
    width: "5rem",
    cell: (trial) => (
      <RowLink to={`/trials/${trial.id}`} className="text-accent">
        {trial.id}
      </RowLink>
    ),
    value: (trial) => trial.id,
  },
  {
    id: "job",
    name: "Job",
    width: "5rem",
    cell: (trial) => (
      <RowLink to={`/jobs/${trial.job_id}`} className="text-accent">
        {trial.job_id}
      </RowLink>
    ),
    value: (trial) => trial.job_id,
  },
  {
    id: "task",
    name: "Task",
    width: "minmax(10rem, 2fr)",
    cell: (trial) => <span title={trial.task.name}>{trial.task.name}</span>,
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
    id: "phase",
    name: "Phase",
    width: "7rem",
    cell: (trial) => (trial.cancel_requested ? "stopping" : (trial.phase?.replaceAll("_", " ") ?? "–")),
    value: (trial) => trial.phase,
  },
  {
    id: "sandbox",
    name: "Sandbox",
    width: "8rem",
    cell: (trial) => trial.sandbox ?? "–",
    value: (trial) => trial.sandbox,
  },
  {
    id: "worker",
    name: "Worker",
    width: "minmax(9rem, 1fr)",
    cell: (trial) => (
      <span className="text-ink-soft" title={trial.worker ?? undefined}>
        {shortName(trial.worker ?? "–")}
      </span>
    ),
    value: (trial) => trial.worker,
  },
  {
    id: "since",
    name: "Since",
    width: "7rem",
    align: "right",
    cell: (trial) => <Moment at={trial.started_at} />,
    value: (trial) => trial.started_at,
  },
];
