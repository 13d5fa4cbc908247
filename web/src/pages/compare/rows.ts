/** Rows of aligned steps. Places are counted from 1. */

import type { Schemas } from "@/api/client";

export type Rows = Schemas["StepPair"][];

/** The index of the step that a side is at in a row; where it has none, of the last one before. */
export function near(rows: Rows, which: "left" | "right", row: number): number {
  for (let at = Math.min(row, rows.length - 1); at >= 0; at -= 1) {
    const place = rows[at]?.[which];
    if (place) return place - 1;
  }
  return 0;
}
