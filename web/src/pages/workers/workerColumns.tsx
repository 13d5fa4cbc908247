import type { Schemas } from "@/api/client";
import type { Column } from "@/parts/column";
import { Moment } from "@/parts/Moment";
import { StateShape } from "@/parts/State";

type Worker = Schemas["WorkerItem"];

export const WORKER_COLUMNS: Column<Worker>[] = [
  {
    id: "worker",
    name: "Worker",
    width: "minmax(10rem, 1.5fr)",
    cell: (worker) => (
      <span className="font-medium" title={worker.worker}>
        {shortName(worker.worker)}
      </span>
    ),
    value: (worker) => worker.worker,
  },
  {
    id: "state",
    name: "State",
    width: "7rem",
    cell: (worker) => <WorkerState of={worker} />,
    value: (worker) => (worker.paused ? `paused: ${worker.paused}` : stateOf(worker)),
  },
  {
    id: "busy",
    name: "Trials",
    width: "9rem",
    cell: (worker) => <Busy of={worker} />,
    value: (worker) => worker.running,
  },
  {
    id: "capacity",
    name: "Room for",
    width: "5rem",
    align: "right",
    cell: (worker) => worker.capacity,
    value: (worker) => worker.capacity,
  },
  {
    id: "sandboxes",
    name: "Sandboxes",
    width: "minmax(8rem, 1fr)",
    cell: (worker) => worker.sandboxes?.join(", ") || (worker.starting ? "checking …" : "–"),
    value: (worker) => worker.sandboxes?.join(" "),
  },
  {
    id: "versions",
    name: "Versions",
    width: "minmax(14rem, 2fr)",
    cell: (worker) => (
      <span className="text-ink-soft">
        {Object.entries(worker.versions)
          .map(([name, version]) => `${name} ${version}`)
          .join(" · ")}
      </span>
    ),
    value: (worker) => JSON.stringify(worker.versions),
  },
  {
    id: "seen",
    name: "Last heard",
    width: "7rem",
    align: "right",
    cell: (worker) => <Moment at={worker.seen_at} />,
    value: (worker) => worker.seen_at,
  },
  {
    id: "started",
    name: "Up since",
    width: "7rem",
    align: "right",
    cell: (worker) => <Moment at={worker.started_at} />,
    value: (worker) => worker.started_at,
  },
];

/** `host:pid`; the whole name has the process's beginning too, which tells only machines something. */
export function shortName(worker: string): string {
  return worker.split(":").slice(0, -1).join(":") || worker;
}

function stateOf(worker: Worker): string {
  if (!worker.alive) return "silent";
  if (worker.paused) return "paused";
  return worker.draining ? "leaving" : worker.starting ? "starting" : worker.running ? "busy" : "idle";
}

function WorkerState({ of }: { of: Worker }) {
  const wrong = !of.alive || !!of.paused;
  const shape = wrong ? "error" : of.running ? "running" : "queued";
  return (
    <span
      className={`inline-flex items-center gap-1.5 align-bottom ${wrong ? "text-error" : ""}`}
      title={of.paused || undefined}
    >
      <StateShape of={shape} />
      {stateOf(of)}
    </span>
  );
}

function Busy({ of }: { of: Worker }) {
  return (
    <span className="inline-flex w-full items-center gap-2 align-bottom">
      <span aria-hidden className="h-1.5 w-20 overflow-hidden rounded-full bg-raised">
        <span
          className="block h-full bg-running"
          style={{ width: `${Math.min(100, (100 * of.running) / Math.max(of.capacity, 1))}%` }}
        />
      </span>
      <span className="grow text-right">{of.running}</span>
    </span>
  );
}
