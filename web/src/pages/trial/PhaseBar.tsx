import type { Schemas } from "@/api/client";
import { duration } from "@/parts/format";

const WORDS: Record<string, string> = { preparing: "prepare", build: "build", start: "start", agent_setup: "set up agent", agent: "agent", verify: "verify", saving: "save" };
const LOOKS: Record<string, string> = { agent: "bg-accent-soft text-accent", verify: "bg-running-soft text-running", build: "bg-error-soft text-error" };

/** Where the time went. A click moves the recording to the beginning of that phase. */
export function PhaseBar({ trial, recordingStart, onSeek }: { trial: Schemas["TrialDetail"]; recordingStart: number | null; onSeek: (second: number) => void }) {
  const timings = trial.result?.timings ?? [];
  if (!timings.length) {
    return <div className="flex h-7 items-center rounded-md border bg-panel px-3 text-xs text-ink-soft" role="status">{trial.state === "running" ? `now: ${WORDS[trial.phase ?? ""] ?? trial.phase ?? "starting"}` : trial.state === "ended" ? "no phases were recorded" : "waiting for a worker"}</div>;
  }
  const total = timings.reduce((sum, timing) => sum + timing.seconds, 0) || 1;
  return (
    <div className="flex h-7 overflow-hidden rounded-md border bg-panel text-xs" role="group" aria-label="Phases">
      {timings.map((timing, index) => {
        const told = `${WORDS[timing.phase] ?? timing.phase}${timing.step ? ` ${timing.step}` : ""} ${duration(timing.seconds)}`;
        const from = recordingStart == null ? null : (Date.parse(timing.started_at) - recordingStart) / 1000;
        return (
          <button key={index} type="button" title={told} disabled={from == null} onClick={() => onSeek(Math.max(0, from ?? 0))} style={{ flexGrow: Math.max(timing.seconds / total, 0.02), flexBasis: 0 }}
            className={`min-w-6 truncate border-r px-2 text-left last:border-r-0 disabled:cursor-default ${LOOKS[timing.phase] ?? "text-ink-soft"}`}>
            {told}
          </button>
        );
      })}
    </div>
  );
}
