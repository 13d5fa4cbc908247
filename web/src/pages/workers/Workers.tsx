/** Who runs what and where, what waits, and how fast it goes. */

import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { usePages } from "@/api/paging";
import { useInvalidation } from "@/api/refresh";
import { DataTable } from "@/parts/DataTable";
import { CapFigures } from "@/parts/CapFigures";
import { count, money } from "@/parts/format";
import { Moment } from "@/parts/Moment";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Figure, Figures, Panel } from "@/parts/Panel";
import { useTitle } from "@/parts/title";
import { RUNNING_COLUMNS } from "./runningColumns";
import { shortName, WORKER_COLUMNS } from "./workerColumns";

const EVERY_MS = 3000;

export default function Workers() {
  useTitle("Workers");
  const queue = useQuery({
    queryKey: ["queue"],
    queryFn: () => unwrap(api.GET("/api/v1/queue")),
    refetchInterval: EVERY_MS,
  });
  const running = usePages(
    ["queue", "running"],
    (page) => unwrap(api.GET("/api/v1/queue/running", { params: { query: page as never } })),
    { everyMs: EVERY_MS },
  );
  useLive(
    "/api/v1/events?kinds=job.created,job.cancelled,trial.released,trial.claimed,trial.phase,trial.ended,trial.retry",
    useInvalidation(["queue"]),
  );
  if (queue.error) return <Trouble error={queue.error} retry={() => void queue.refetch()} />;
  if (!queue.data) return <Waiting />;
  return (
    <div className="flex flex-col gap-3">
      <h1>Workers and queue</h1>
      <Numbers of={queue.data} />
      <Today />
      <Warnings workers={queue.data.workers} />
      <div className="rounded-lg border bg-panel">
        <DataTable
          name="workers"
          rows={queue.data.workers}
          columns={WORKER_COLUMNS}
          rowKey={(worker) => worker.worker}
          height="18rem"
          empty={
            <Empty>
              No worker is here, so nothing runs. Start one with{" "}
              <code className="font-mono text-xs">seatrial worker</code>.
            </Empty>
          }
        />
      </div>
      <div className="rounded-lg border bg-panel">
        {running.error ? <Trouble error={running.error} retry={() => void running.refetch()} /> : null}
        <DataTable
          name="running trials"
          rows={running.rows}
          columns={RUNNING_COLUMNS}
          rowKey={(trial) => trial.id}
          height="28rem"
          onEnd={running.more}
          whole={running.isWhole}
          all={running.all}
          total={queue.data.running}
          empty={
            <Empty>
              {queue.data.queued
                ? "Nothing runs yet; the next free worker claims the queued trials."
                : "No trial is running."}
            </Empty>
          }
        />
      </div>
    </div>
  );
}

/** What everybody has spent on models today, and what the operator's cap leaves. */
function Today() {
  const today = useQuery({
    queryKey: ["budget", "today"],
    queryFn: () => unwrap(api.GET("/api/v1/budget")),
    refetchInterval: EVERY_MS,
  });
  const spent = today.data?.spending.spent;
  return (
    <Panel title="Spent on models today" minHeight={86}>
      {today.data ? (
        <Figures>
          <Figure name="cost" value={money(spent?.dollars)} hint={`Since midnight UTC, ${today.data.day}`} />
          <Figure name="tokens" value={count(spent?.tokens)} />
          <Figure name="model calls" value={count(spent?.calls)} />
          <CapFigures caps={[{ of: "day", cap: today.data.cap, spending: today.data.spending }]} />
        </Figures>
      ) : null}
    </Panel>
  );
}

function Numbers({ of }: { of: Schemas["QueueState"] }) {
  return (
    <Panel>
      <Figures>
        <Figure name="queued" value={count(of.queued)} />
        <Figure name="waiting for another try" value={count(of.delayed)} hint="Queued, but not before a later moment" />
        <Figure
          name="running"
          value={`${count(of.running)} of ${count(of.capacity)}`}
          hint="Running trials of the workers' capacity"
        />
        <Figure
          name="backlog per worker"
          value={of.backlog_per_worker == null ? "–" : of.backlog_per_worker.toFixed(1)}
          hint="Use this to scale workers"
        />
        <Figure
          name="ended per minute"
          value={count(of.ended_last_minute)}
          hint="Trials ended in the last minute"
        />
        <Figure name="oldest waits since" value={<Moment at={of.oldest_queued_at} />} />
      </Figures>
    </Panel>
  );
}

/** A worker that takes nothing looks like an idle one; people should not have to find out why their jobs wait. */
function Warnings({ workers }: { workers: Schemas["WorkerItem"][] }) {
  const told = workers.flatMap((worker) => {
    if (!worker.alive)
      return [
        `${shortName(worker.worker)} sends no heartbeats. Other workers get its trials when its lease has run out.`,
      ];
    const paused = worker.paused ? [`${shortName(worker.worker)} claims no trials: ${worker.paused}`] : [];
    const troubles = (worker.troubles ?? []).map(
      (trouble) => `${shortName(worker.worker)}: ${trouble.duty} failed ${trouble.count} times: ${trouble.error}`,
    );
    return [...paused, ...troubles];
  });
  if (!told.length) return null;
  return (
    <ul
      role="status"
      className="flex flex-col gap-1 rounded-md border border-error/40 bg-error-soft px-3 py-2 text-sm text-error"
    >
      {told.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}
