/** Steps of two trials in rows: the same action opposite each other, differences marked, a row opened by a click. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";

import { type Step, title } from "../trial/steps";
import type { Rows } from "./rows";
import type { Side } from "./side";

type Which = "left" | "right";

type Props = {
  rows: Rows;
  left: Side;
  right: Side;
  /** The open row. */
  at: number | null;
  /** The row that the recordings are at. */
  playing: number | null;
  first: number | null;
  onChoose: (row: number, which: Which) => void;
};

export function AlignedSteps({ rows, left, right, at, playing, first, onChoose }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (index === at ? 300 : 32),
    overscan: 8,
  });
  useEffect(() => {
    if (at != null && at < rows.length) list.scrollToIndex(at, { align: "start" });
  }, [at, rows.length, list]);
  return (
    <div
      ref={scroller}
      className="max-h-[32rem] overflow-auto"
      tabIndex={0}
      role="list"
      aria-label="Steps side by side"
    >
      <div className="relative" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index] as Rows[number];
          const isOpen = item.index === at;
          const isFirst = item.index === first;
          return (
            <div
              key={item.key}
              ref={list.measureElement}
              data-index={item.index}
              data-first-difference={isFirst || undefined}
              role="listitem"
              aria-current={item.index === playing ? "step" : undefined}
              className={`absolute inset-x-0 border-b ${item.index === playing ? "border-l-2 border-l-accent" : ""} ${isFirst ? "border-t-2 border-t-error" : ""}`}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {isFirst ? (
                <p className="px-2 pt-1 text-xs font-semibold text-error">
                  <span aria-hidden>▲</span> first difference
                </p>
              ) : null}
              <div className="grid grid-cols-[minmax(0,1fr)] md:grid-cols-[minmax(0,1fr)_1.5rem_minmax(0,1fr)]">
                <Cell
                  step={stepOf(left, row.left)}
                  which="left"
                  isOpen={isOpen}
                  onChoose={() => onChoose(item.index, "left")}
                />
                <span
                  className={`self-start pt-1 text-center text-sm max-md:hidden ${row.same ? "text-ink-faint" : "text-error"}`}
                  title={told(row)}
                >
                  {row.same ? (row.same_output ? "=" : "≈") : "≠"}
                  <span className="sr-only">{told(row)}</span>
                </span>
                <Cell
                  step={stepOf(right, row.right)}
                  which="right"
                  isOpen={isOpen}
                  onChoose={() => onChoose(item.index, "right")}
                />
              </div>
            </div>
          );
        })}
      </div>
    </div>
  );
}

const stepOf = (side: Side, place: number | null) => (place ? side.steps[place - 1] : undefined);

function told(row: Rows[number]): string {
  return row.same ? (row.same_output ? "the same" : "the same action, other output") : "different";
}

function Cell(props: { step: Step | undefined; which: Which; isOpen: boolean; onChoose: () => void }) {
  const { step, which, isOpen, onChoose } = props;
  if (!step) return <p className="px-2 py-1 text-xs text-ink-faint">no such step on the {which}</p>;
  return (
    <div className="min-w-0">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onChoose}
        className={`grid w-full grid-cols-[auto_minmax(0,1fr)] items-baseline gap-1 px-2 py-1 text-left text-sm hover:bg-raised ${isOpen ? "bg-accent-soft" : ""}`}
      >
        <span className="min-w-8 text-xs text-ink-soft">
          <span className="md:sr-only">{which} step </span>
          {step.number}
        </span>
        <span className={`truncate ${step.calls.length ? "font-mono text-xs" : ""}`}>{title(step)}</span>
      </button>
      {isOpen ? <Body step={step} which={which} /> : null}
    </div>
  );
}

function Body({ step, which }: { step: Step; which: Which }) {
  const parts: [string, string, boolean][] = [
    ["thought", step.thought, false],
    ["message", step.message, false],
    ...step.calls.map((call): [string, string, boolean] => [call.name, call.text, true]),
    ["output", step.output, true],
  ];
  return (
    <div className="flex flex-col gap-2 px-3 pt-1 pb-3 text-sm" data-side={which} data-step={step.number}>
      <p className="text-xs text-ink-soft">{step.source}</p>
      {parts
        .filter(([, text]) => text)
        .map(([name, text, isMono], place) => (
          <div key={place}>
            <div className="text-xs text-ink-soft">{name}</div>
            <div
              className={`max-h-48 overflow-auto break-words whitespace-pre-wrap ${isMono ? "rounded bg-raised p-2 font-mono text-xs" : ""}`}
              tabIndex={0}
              role="region"
              aria-label={`${name || "call"}, ${which} step ${step.number}`}
            >
              {text}
            </div>
          </div>
        ))}
    </div>
  );
}
