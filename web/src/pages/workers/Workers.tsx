/** Who runs what, what waits, and how fast it goes. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { type Column, DataTable } from "@/parts/DataTable";
import { count } from "@/parts/format";
import { Moment } from "@/parts/Moment";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Figure, Panel } from "@/parts/Panel";
import { StateShape } from "@/parts/State";
import { throttled } from "@/parts/throttle";

type Worker = Schemas["WorkerItem"];
type Trial = Schemas["TrialItem"];

const WORKERS: Column<Worker>[] = [
  { id: "worker", name: "Worker", width: "minmax(12rem, 2fr)", cell: (worker) => <span className="font-medium">{worker.host}:{worker.pid}</span>, value: (worker) => worker.worker },
  { id: "state", name: "State", width: "8rem", cell: (worker) => <WorkerState of={worker} />, value: stateOf },
  { id: "busy", name: "Busy", width: "9rem", cell: (worker) => `${worker.running} of ${worker.capacity}`, value: (worker) => worker.running },
  { id: "sandboxes", name: "Sandboxes", width: "9rem", cell: (worker) => worker.sandboxes?.join(", ") || "–", value: (worker) => worker.sandboxes?.join(" ") },
  { id: "versions", name: "Versions", width: "minmax(10rem, 2fr)", cell: (worker) => <span className="text-ink-soft">{Object.entries(worker.versions).map(([name, version]) => `${name} ${version}`).join(" · ")}</span>, value: (worker) => JSON.stringify(worker.versions) },
  { id: "seen", name: "Last heard", width: "8rem", cell: (worker) => <Moment at={worker.seen_at} />, value: (worker) => worker.seen_at },
  { id: "started", name: "Up since", width: "8rem", cell: (worker) => <Moment at={worker.started_at} />, value: (worker) => worker.started_at },
];

const RUNNING: Column<Trial>[] = [
  { id: "id", name: "Trial", width: "5rem", cell: (trial) => <Link to="/trials/$trial" params={{ trial: String(trial.id) }}>{trial.id}</Link>, value: (trial) => trial.id },
  { id: "job", name: "Job", width: "5rem", cell: (trial) => <Link to="/jobs/$job" params={{ job: String(trial.job_id) }}>{trial.job_id}</Link>, value: (trial) => trial.job_id },
  { id: "task", name: "Task", width: "minmax(10rem, 2fr)", cell: (trial) => trial.task.name, value: (trial) => trial.task.name },
  { id: "agent", name: "Agent / model", width: "minmax(10rem, 2fr)", cell: (trial) => (trial.model ? `${trial.agent} / ${trial.model}` : trial.agent), value: (trial) => trial.agent },
  { id: "phase", name: "Phase", width: "8rem", cell: (trial) => trial.phase?.replaceAll("_", " ") ?? "–", value: (trial) => trial.phase },
  { id: "since", name: "Since", width: "8rem", cell: (trial) => <Moment at={trial.started_at} />, value: (trial) => trial.started_at },
  { id: "worker", name: "Worker", width: "minmax(9rem, 1fr)", cell: (trial) => <span className="text-ink-soft">{trial.worker}</span>, value: (trial) => trial.worker },
];

function stateOf(worker: Worker): string {
  if (!worker.alive) return "silent";
  if (worker.paused) return `paused: ${worker.paused}`;
  return worker.draining ? "leaving" : worker.starting ? "starting" : worker.running ? "busy" : "idle";
}

function WorkerState({ of }: { of: Worker }) {
  const shape = of.alive ? (of.running ? "running" : "queued") : "error";
  return <span className={`inline-flex items-center gap-1.5 align-bottom ${of.alive ? "" : "text-error"}`}><StateShape of={shape} />{stateOf(of)}</span>;
}

export default function Workers() {
  const queries = useQueryClient();
  const queue = useQuery({ queryKey: ["queue"], queryFn: () => unwrap(api.GET("/api/v1/queue")), refetchInterval: 3000 });
  const running = useQuery({ queryKey: ["queue", "running"], queryFn: () => unwrap(api.GET("/api/v1/trials", { params: { query: { state: ["running"], limit: 500 } as never } })), refetchInterval: 3000 });
  const refresh = useMemo(() => throttled(() => void queries.invalidateQueries({ queryKey: ["queue"] }), 300), [queries]);
  useLive("/api/v1/events?kinds=job.created,trial.claimed,trial.phase,trial.ended,trial.retry", refresh);
  if (queue.error) return <Trouble error={queue.error} />;
  if (!queue.data) return <Waiting />;
  const { data } = queue;
  return (
    <div className="flex flex-col gap-3">
      <h1>Workers and queue</h1>
      <Panel>
        <div className="flex flex-wrap gap-x-8 gap-y-3">
          <Figure name="queued" value={count(data.queued)} />
          <Figure name="waiting for another try" value={count(data.delayed)} />
          <Figure name="running" value={`${count(data.running)} of ${count(data.capacity)}`} />
          <Figure name="backlog per worker" value={data.backlog_per_worker == null ? "–" : data.backlog_per_worker.toFixed(1)} hint="The number to scale workers by" />
          <Figure name="pace" value={`${data.ended_last_minute} ended in the last minute`} />
          <Figure name="oldest waits since" value={<Moment at={data.oldest_queued_at} />} />
        </div>
      </Panel>
      <div className="rounded-lg border bg-panel">
        <DataTable name="workers" rows={data.workers} columns={WORKERS} rowKey={(worker) => worker.worker} height="18rem"
          empty={<Empty>No worker is here, so nothing runs. Start one with <code className="font-mono text-xs">seatrial worker</code>.</Empty>} />
      </div>
      <div className="rounded-lg border bg-panel">
        <DataTable name="running trials" rows={running.data?.items ?? []} columns={RUNNING} rowKey={(trial) => trial.id} height="26rem" empty={<Empty>Nothing runs at the moment.</Empty>} />
      </div>
    </div>
  );
}
