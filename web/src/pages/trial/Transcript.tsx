/** Everything that was said and done, in full width: prompts, thoughts, calls and what came of them, searched as one text. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";

import { Button } from "@/parts/Button";
import { FIELD } from "@/parts/field";
import { count } from "@/parts/format";
import { Waiting } from "@/parts/Notice";
import type { Try } from "./files";
import { matchesIn, MOST_MATCHES } from "./matches";
import type { Step } from "./steps";
import { TranscriptStep } from "./TranscriptStep";

type Props = { steps: Step[]; of: Try; files: string[]; find: string; pending: boolean };

export function Transcript({ steps, of, files, find, pending }: Props) {
  const [wanted, setWanted] = useState(find);
  const searched = useDeferredValue(wanted.trim());
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const [at, setAt] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const matches = useMemo(() => matchesIn(steps, searched), [steps, searched]);
  const current = matches[Math.min(at, matches.length - 1)];
  const hit = useMemo(() => new Set(matches.map((match) => match.step)), [matches]);
  const list = useVirtualizer({
    count: steps.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 160,
    overscan: 4,
  });
  useEffect(() => setAt(0), [searched]);
  useEffect(() => {
    if (!current) return undefined;
    list.scrollToIndex(current.step, { align: "start" });
    // The step is drawn first; then its mark can be found.
    const later = setTimeout(
      () => scroller.current?.querySelector("mark[data-current]")?.scrollIntoView({ block: "nearest" }),
      50,
    );
    return () => clearTimeout(later);
  }, [current, list]);

  function toggle(number: number) {
    setClosed((old) => {
      const next = new Set(old);
      if (!next.delete(number)) next.add(number);
      return next;
    });
  }
  const walk = (by: number) => setAt((old) => (Math.min(old, matches.length - 1) + by + matches.length) % matches.length);
  const calls = useMemo(() => callNumbers(steps), [steps]);

  if (pending) return <Waiting rows={8} />;
  return (
    <div>
      <form
        role="search"
        aria-label="Transcript"
        className="flex flex-wrap items-center gap-2 border-b px-3 py-1.5"
        onSubmit={(event) => {
          event.preventDefault();
          if (matches.length) walk(1);
        }}
      >
        <input
          type="search"
          aria-label="Search the transcript"
          placeholder="Search the transcript"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
          className={`${FIELD} w-56`}
        />
        <Button kind="quiet" disabled={!matches.length} onClick={() => walk(-1)} aria-label="Previous match">
          ↑
        </Button>
        <Button kind="quiet" disabled={!matches.length} onClick={() => walk(1)} aria-label="Next match">
          ↓
        </Button>
        <span role="status" className="min-w-40 text-xs text-ink-soft">
          {told(searched, matches.length, at)}
        </span>
        <span className="grow" />
        <Button kind="quiet" onClick={() => setClosed(new Set())}>
          Expand all
        </Button>
        <Button kind="quiet" onClick={() => setClosed(new Set(steps.map((step) => step.number)))}>
          Collapse all
        </Button>
      </form>
      <div
        ref={scroller}
        className="h-[32rem] overflow-auto"
        tabIndex={0}
        role="region"
        aria-label="Transcript of all steps"
      >
        <div className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const step = steps[item.index] as Step;
            return (
              <div
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                className="absolute inset-x-0 border-b"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <TranscriptStep
                  step={step}
                  of={of}
                  files={files}
                  call={calls.get(step.number)}
                  open={!closed.has(step.number) || hit.has(item.index)}
                  onToggle={toggle}
                  searched={searched}
                  current={current?.step === item.index ? current : null}
                />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The model call behind a step, counted from 0 as agents number their files. */
function callNumbers(steps: Step[]): Map<number, number> {
  return new Map(steps.filter((step) => step.source === "agent").map((step, index) => [step.number, index]));
}

function told(searched: string, found: number, at: number): string {
  if (!searched) return "";
  if (!found) return `Nothing matches “${searched}”.`;
  const all = found === MOST_MATCHES ? `the first ${count(found)}` : count(found);
  return `match ${Math.min(at, found - 1) + 1} of ${all}`;
}
