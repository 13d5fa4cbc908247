/** Server-sent events. The browser reconnects by itself and says where it stopped; the page shows how the line stands. */

import { useEffect, useRef, useSyncExternalStore } from "react";

export type LineState = "idle" | "connecting" | "open" | "lost";
export type LiveEvent = {
  kind: string;
  job: number | null;
  trial: number | null;
  tryNumber: number | null;
  at: number | null;
  data: Record<string, unknown>;
};

const KINDS = [
  "job.created",
  "job.cancelled",
  "job.ended",
  "job.trimmed",
  "trial.released",
  "trial.claimed",
  "trial.phase",
  "trial.step",
  "trial.calls",
  "trial.retry",
  "trial.ended",
  "trial.output",
  "gap",
];

/** Not of the service: the line stands, for the first time or again. */
export const OPENED = "opened";

let line: LineState = "idle";
const watchers = new Set<() => void>();

function setLine(next: LineState) {
  line = next;
  for (const watcher of watchers) watcher();
}

/** The health of the page's stream, for the thin line on top. */
export function useLineState(): LineState {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => line,
  );
}

/** Listens while the component is there. `onEvent` may change between renders without a new connection. */
export function useLive(url: string | null, onEvent: (event: LiveEvent) => void) {
  const handler = useRef(onEvent);
  handler.current = onEvent;
  useEffect(() => {
    if (!url) return undefined;
    setLine("connecting");
    const source = new EventSource(url);
    const receive = (message: MessageEvent<string>) =>
      handler.current(eventOf(message.type, JSON.parse(message.data) as Record<string, unknown>));
    source.onopen = () => {
      setLine("open");
      // What happened before the line stood was not told: whoever listens looks once more.
      handler.current({ kind: OPENED, job: null, trial: null, tryNumber: null, at: null, data: {} });
    };
    source.onerror = () => setLine("lost");
    for (const kind of KINDS) source.addEventListener(kind, receive);
    source.addEventListener("end", () => {
      source.close();
      setLine("idle");
    });
    return () => {
      source.close();
      setLine("idle");
    };
  }, [url]);
}

/** Events of the chronicle carry their own facts one level down; pieces of output are flat. */
function eventOf(kind: string, sent: Record<string, unknown>): LiveEvent {
  return {
    kind,
    job: (sent.job_id as number | null | undefined) ?? null,
    trial: (sent.trial_id as number | null | undefined) ?? null,
    tryNumber: (sent.attempt as number | null | undefined) ?? null,
    at: typeof sent.at === "string" ? Date.parse(sent.at) : null,
    data: (sent.data ?? sent) as Record<string, unknown>,
  };
}
