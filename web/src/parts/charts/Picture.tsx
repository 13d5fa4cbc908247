/**
 * One picture: drawn from the service's marks, with the value of what is pointed at or focused below it, and the table
 * behind it. Tab enters the picture once; the arrows go from value to value.
 */

import { useRouter } from "@tanstack/react-router";
import { type KeyboardEvent, type MouseEvent, useId, useRef, useState } from "react";

import type { Schemas } from "@/api/client";
import { buttonLook } from "@/parts/Button";
import { Marks } from "./Marks";
import "./charts.css";

type Chart = Schemas["Chart"];
type Spot = Schemas["Spot"];

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function Picture({ chart, file }: { chart: Chart; file: string }) {
  const [told, setTold] = useState<string | null>(null);
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <figure className="flex min-w-0 flex-col gap-1.5 border-b p-3" aria-labelledby={`${id}-title`}>
      <figcaption>
        <div className="flex items-baseline justify-between gap-2">
          <h3 id={`${id}-title`} className="font-semibold">
            {chart.title}
          </h3>
          <a href={file} download className={buttonLook("quiet")} aria-label={`${chart.title} as SVG`}>
            SVG
          </a>
        </div>
        <p id={`${id}-summary`} className="text-xs text-ink-soft">
          {chart.summary}
        </p>
        {chart.notes?.map((note, index) => (
          <p key={index} className="text-xs text-error">
            {note}
          </p>
        ))}
      </figcaption>
      <div className="max-h-[34rem] overflow-y-auto">
        <Canvas chart={chart} described={`${id}-summary`} onTell={setTold} />
      </div>
      <p className="min-h-9 text-xs" data-told>
        {told ?? <span className="text-ink-faint">{chart.drawing.spots.length ? "Point at a value to read it." : ""}</span>}
      </p>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="cursor-pointer text-sm text-accent">Table: {chart.title}</summary>
        {open ? <Values chart={chart} /> : null}
      </details>
    </figure>
  );
}

type CanvasProps = { chart: Chart; described: string; onTell: (text: string | null) => void };

function Canvas({ chart, described, onTell }: CanvasProps) {
  const { drawing } = chart;
  const [at, setAt] = useState(0);
  const picture = useRef<SVGSVGElement>(null);
  function walk(event: KeyboardEvent) {
    const step = STEPS[event.key];
    if (!step || !drawing.spots.length) return;
    event.preventDefault();
    const next = Math.min(drawing.spots.length - 1, Math.max(0, at + step));
    setAt(next);
    picture.current?.querySelectorAll<SVGElement>(".spot")[next]?.focus();
  }
  return (
    <svg
      ref={picture}
      role="group"
      aria-label={chart.title}
      aria-describedby={described}
      className="chart block h-auto w-full"
      viewBox={`0 0 ${drawing.width} ${drawing.height}`}
      onKeyDown={walk}
    >
      <Marks of={drawing.marks} />
      {drawing.spots.map((spot, index) => (
        <Value
          key={index}
          spot={spot}
          reachable={index === Math.min(at, drawing.spots.length - 1)}
          onTell={(on) => {
            if (on) setAt(index);
            onTell(on ? spot.text : null);
          }}
        />
      ))}
    </svg>
  );
}

/** Only paths of this page are followed. */
const isOurs = (to: string | null | undefined): to is string => !!to && /^\/[^/\\]/.test(to);

function Value({ spot, reachable, onTell }: { spot: Spot; reachable: boolean; onTell: (on: boolean) => void }) {
  const router = useRouter();
  const shared = {
    className: "spot",
    tabIndex: reachable ? 0 : -1,
    onMouseEnter: () => onTell(true),
    onMouseLeave: () => onTell(false),
    onFocus: () => onTell(true),
    onBlur: () => onTell(false),
  };
  const { to } = spot;
  if (!isOurs(to))
    return (
      <g role="img" {...shared}>
        <title>{spot.text}</title>
        <rect {...spot.area} className="hit" />
        <Marks of={spot.marks} />
      </g>
    );
  function follow(event: MouseEvent) {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    router.history.push(to as string);
  }
  return (
    <a href={to} onClick={follow} {...shared}>
      <title>{spot.text}</title>
      <rect {...spot.area} className="hit" />
      <Marks of={spot.marks} />
    </a>
  );
}

function Values({ chart }: { chart: Chart }) {
  const { columns, rows } = chart.table;
  return (
    <div className="max-h-96 overflow-auto" tabIndex={0} role="region" aria-label={`Table: ${chart.title}`}>
      <table className="text-xs" aria-label={chart.title}>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} scope="col" className="border-b py-1 pr-4 text-left font-semibold">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} className="border-b py-1 pr-4 align-top [overflow-wrap:anywhere]" dir="auto">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
