/** One axis for everything: phases, the agent's steps, tokens and cost, and where the recording is. A click goes there. */

import { useMemo } from "react";

import type { Schemas } from "@/api/client";
import { count, duration, money, plural } from "@/parts/format";
import { type Phase, phaseName } from "./phases";
import type { Step } from "./steps";

const LOOKS: Record<string, string> = {
  agent: "bg-accent-soft text-accent",
  verify: "bg-running-soft text-running",
  build: "bg-error-soft text-error",
};

type Props = {
  trial: Schemas["TrialDetail"];
  phases: Phase[];
  steps: Step[];
  now: number | null;
  onSeek: (moment: number) => void;
};

export function Timeline({ trial, phases, steps, now, onSeek }: Props) {
  const from = phases[0]?.from;
  if (from == null) return <Now trial={trial} />;
  const to = Math.max(from + 1, ...phases.map((phase) => phase.from + phase.seconds * 1000));
  const share = (moment: number) => Math.min(100, Math.max(0, (100 * (moment - from)) / (to - from)));
  const marked = steps.filter((step) => step.at != null);
  return (
    <section aria-label="Timeline" className="rounded-md border bg-panel text-xs">
      <div className="relative h-7 overflow-hidden border-b" role="group" aria-label="Phases">
        {phases.map((phase, index) => (
          <button
            key={index}
            type="button"
            title={`${phase.name} ${duration(phase.seconds)}`}
            onClick={() => onSeek(phase.from)}
            className={`absolute top-0 h-full overflow-hidden border-r text-left whitespace-nowrap hover:brightness-95 ${LOOKS[phase.phase] ?? "bg-raised text-ink-soft"}`}
            style={{
              left: `${share(phase.from)}%`,
              width: `max(3px, ${share(phase.from + phase.seconds * 1000) - share(phase.from)}%)`,
            }}
          >
            <span className="block truncate px-2">
              {phase.name} {duration(phase.seconds)}
            </span>
          </button>
        ))}
      </div>
      <div className="relative h-11">
        {marked.length ? (
          <Spent steps={marked} share={share} />
        ) : (
          <p className="absolute top-3.5 left-3 text-ink-faint">
            {trial.state === "ended" ? "No steps were recorded." : "The agent's steps appear here."}
          </p>
        )}
        <input
          type="range"
          aria-label="Moment"
          aria-valuetext={duration(((now ?? from) - from) / 1000)}
          min={0}
          max={(to - from) / 1000}
          step={0.1}
          value={Math.min(Math.max((now ?? from) - from, 0), to - from) / 1000}
          onChange={(event) => onSeek(from + Number(event.target.value) * 1000)}
          className="peer absolute inset-0 h-full w-full cursor-pointer opacity-0"
        />
        <div
          aria-hidden
          className="pointer-events-none absolute inset-0 rounded peer-focus-visible:outline-2 peer-focus-visible:outline-running"
        />
        {now == null ? null : (
          <div
            aria-hidden
            data-needle
            className="pointer-events-none absolute top-0 h-full w-0.5 bg-failed"
            style={{ left: `${share(now)}%` }}
          />
        )}
      </div>
    </section>
  );
}

/** Steps as ticks; above them what they had used up by then: tokens as an area, cost as a line. */
function Spent({ steps, share }: { steps: Step[]; share: (moment: number) => number }) {
  const points = useMemo(() => {
    let [tokens, cost] = [0, 0];
    return steps.map((step) => {
      tokens += step.inputTokens + step.outputTokens;
      cost += step.cost;
      return { at: share(step.at as number) * 10, tokens, cost };
    });
  }, [steps, share]);
  const last = points.at(-1) as { at: number; tokens: number; cost: number };
  const line = (of: "tokens" | "cost") => {
    const height = (value: number) => 38 - (last[of] ? (32 * value) / last[of] : 0);
    return `M${points[0]?.at ?? 0},38 ${points.map((point, index) => `H${point.at} V${height(point[of])}${index === points.length - 1 ? ` H1000` : ""}`).join(" ")}`;
  };
  return (
    <>
      <svg viewBox="0 0 1000 44" preserveAspectRatio="none" className="absolute inset-0 h-full w-full" aria-hidden>
        {last.tokens ? (
          <path d={`${line("tokens")} V38 Z`} fill="var(--accent)" fillOpacity="0.14" stroke="none" />
        ) : null}
        {last.cost ? (
          <path
            d={line("cost")}
            fill="none"
            stroke="var(--error)"
            strokeWidth="1.2"
            vectorEffect="non-scaling-stroke"
          />
        ) : null}
        {points.map((point, index) => (
          <path
            key={index}
            d={`M${point.at},38 v6`}
            stroke="var(--accent)"
            strokeWidth="1.4"
            vectorEffect="non-scaling-stroke"
          />
        ))}
      </svg>
      <p className="absolute top-1 left-2 text-ink-soft">
        {plural(steps.length, "steps")}
        {last.tokens ? ` · ${count(last.tokens)} tokens` : ""}
        {last.cost ? ` · ${money(last.cost)}` : ""}
      </p>
    </>
  );
}

function Now({ trial }: { trial: Schemas["TrialDetail"] }) {
  const told =
    trial.state === "running"
      ? `now: ${phaseName(trial.phase ?? "starting")}`
      : trial.state === "ended"
        ? "no phases were recorded"
        : "waiting for a worker";
  return (
    <div className="flex h-[73px] items-center rounded-md border bg-panel px-3 text-xs text-ink-soft" role="status">
      {told}
    </div>
  );
}
