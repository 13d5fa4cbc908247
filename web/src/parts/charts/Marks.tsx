/** The marks of a picture as SVG elements, where the service says they are. Every text is a text node. */

import { memo } from "react";

import type { Schemas } from "@/api/client";

type Drawing = Schemas["Drawing"];
export type Mark = Drawing["marks"][number];
type Shape = Schemas["Shape"];

export const Marks = memo(function Marks({ of }: { of: readonly Mark[] }) {
  return of.map((mark, index) => <OneMark key={index} of={mark} />);
});

function OneMark({ of }: { of: Mark }) {
  switch (of.kind) {
    case "line":
      return (
        <polyline
          points={of.points.map(([x, y]) => `${x},${y}`).join(" ")}
          className={`line t-${of.tone}${of.dashed ? " dashed" : ""}`}
          strokeWidth={of.width}
        />
      );
    case "box":
      return (
        <rect
          x={of.x}
          y={of.y}
          width={of.width}
          height={of.height}
          rx={2}
          className={`box t-${of.tone}`}
          fillOpacity={of.strength}
        />
      );
    case "sign": {
      const look = `sign t-${of.tone} ${of.shape}`;
      const size = of.size ?? 5;
      if (of.shape === "dot" || of.shape === "ring")
        return <circle cx={of.x} cy={of.y} r={of.shape === "dot" ? size : size - 1} className={look} />;
      return <path d={outline(of.shape, of.x, of.y, size)} className={look} />;
    }
    case "label":
      return (
        <text
          x={of.x}
          y={of.y}
          textAnchor={of.anchor}
          className={`label t-${of.tone}${of.small ? " small" : ""}${of.bold ? " bold" : ""}`}
        >
          {of.text}
        </text>
      );
    default:
      return null;
  }
}

/** The same paths as in charts/svg.py. */
function outline(shape: Shape, x: number, y: number, s: number): string {
  switch (shape) {
    case "square":
      return `M${x - s} ${y - s}h${2 * s}v${2 * s}h${-2 * s}z`;
    case "diamond":
      return `M${x} ${y - s}L${x + s} ${y}L${x} ${y + s}L${x - s} ${y}z`;
    case "triangle":
      return `M${x} ${y - s}L${x + s} ${y + s}L${x - s} ${y + s}z`;
    default:
      return `M${x - s} ${y - s}L${x + s} ${y + s}M${x + s} ${y - s}L${x - s} ${y + s}`;
  }
}
