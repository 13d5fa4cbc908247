/** The agent's steps: searched, chosen by click or link, and the one under the recording's needle marked. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { FIELD } from "@/parts/field";

import { count, duration, money } from "@/parts/format";
import { Empty, Waiting } from "@/parts/Notice";
import { matches, type Step, title } from "./steps";

type Props = {
  steps: Step[];
  at: number | null;
  now: number | null;
  running: boolean;
  pending: boolean;
  onChoose: (number: number) => void;
  agent: string;
};

export function StepList({ steps, at, now, running, pending, onChoose, agent }: Props) {
  const [wanted, setWanted] = useState("");
  const scroller = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => (wanted ? steps.filter((step) => matches(step, wanted)) : steps), [steps, wanted]);
  const playing = useMemo(
    () => [...steps].reverse().find((step) => step.at != null && now != null && step.at <= now)?.number,
    [steps, now],
  );
  const list = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (shown[index]?.number === at ? 260 : 30),
    overscan: 8,
    getItemKey: (index) => shown[index]?.number ?? index,
  });
  const place = shown.findIndex((step) => step.number === at);
  useEffect(() => {
    if (place >= 0) list.scrollToIndex(place, { align: "start" });
  }, [place, list]);
  const played = shown.findIndex((step) => step.number === playing);
  useEffect(() => {
    // The list follows the recording.
    if (!running && played >= 0) list.scrollToIndex(played, { align: "auto" });
  }, [running, played, list]);
  useEffect(() => {
    // While it runs, the newest step stays in sight, unless somebody reads another one.
    if (running && at == null && shown.length) list.scrollToIndex(shown.length - 1);
  }, [running, at, shown.length, list]);

  if (pending) return <Waiting rows={8} />;
  if (!steps.length)
    return (
      <Empty>{running ? "The agent has not finished a step yet." : `${agent} left no trajectory for this try.`}</Empty>
    );
  return (
    <div>
      <div className="border-b p-2">
        <input
          type="search"
          aria-label="Search the steps"
          placeholder="Search the steps"
          data-search
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
          className={`${FIELD} w-full`}
        />
      </div>
      <div ref={scroller} className="h-[412px] overflow-auto" tabIndex={0} role="list" aria-label="Steps">
        <div className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const step = shown[item.index] as Step;
            const open = step.number === at;
            return (
              <div
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                role="listitem"
                aria-current={step.number === playing ? "step" : undefined}
                className={`absolute inset-x-0 border-b ${step.number === playing ? "border-l-2 border-l-accent" : ""}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <button
                  type="button"
                  aria-expanded={open}
                  onClick={() => onChoose(step.number)}
                  className={`grid w-full grid-cols-[2.2rem_1fr_auto] items-baseline gap-1 px-2 py-1 text-left text-sm hover:bg-raised ${open ? "bg-accent-soft" : ""}`}
                >
                  <span className="text-xs text-ink-faint">{step.number}</span>
                  <span className={`truncate ${step.calls.length ? "font-mono text-xs" : ""}`}>{title(step)}</span>
                  <span className="text-xs text-ink-faint">{took(steps, step)}</span>
                </button>
                {open ? <Whole step={step} /> : null}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function took(steps: Step[], step: Step): string {
  const next = steps[steps.indexOf(step) + 1];
  return step.at != null && next?.at != null ? duration((next.at - step.at) / 1000) : "";
}

function Whole({ step }: { step: Step }) {
  return (
    <div className="flex flex-col gap-2 px-3 pt-1 pb-3 text-sm" data-step={step.number}>
      <p className="text-xs text-ink-faint">
        {step.source}
        {step.inputTokens ? ` · ${count(step.inputTokens)} in, ${count(step.outputTokens)} out` : ""}
        {step.cost ? ` · ${money(step.cost)}` : ""}
      </p>
      {step.thought ? <Text name="thought" text={step.thought} /> : null}
      {step.message ? <Text name="message" text={step.message} /> : null}
      {step.calls.map((call, index) => (
        <Text key={index} name={call.name} text={call.text} mono />
      ))}
      {step.output ? <Text name="output" text={step.output} mono /> : null}
    </div>
  );
}

function Text({ name, text, mono = false }: { name: string; text: string; mono?: boolean }) {
  return (
    <div>
      <div className="text-xs text-ink-faint">{name}</div>
      <div
        className={`max-h-64 overflow-auto break-words whitespace-pre-wrap ${mono ? "rounded bg-raised p-2 font-mono text-xs" : ""}`}
        tabIndex={0}
        role="region"
        aria-label={name}
      >
        {text || "–"}
      </div>
    </div>
  );
}
