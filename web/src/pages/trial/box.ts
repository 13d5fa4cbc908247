/** The box of a recording: as wide as it can be, and known before the player is there. */

import type { CSSProperties } from "react";

type Size = { width: number; height: number };

/** A letter in the player's font, and the player's bar. */
const LETTER = { width: 0.6, height: 1.3333 };
const BAR_PX = 32;

export function isTall({ width, height }: Size): boolean {
  return height * LETTER.height > width * LETTER.width;
}

export function boxOf(size: Size): CSSProperties {
  if (isTall(size)) return { height: "70vh" };
  return {
    aspectRatio: `${size.width * LETTER.width} / ${size.height * LETTER.height}`,
    boxSizing: "content-box",
    paddingBottom: BAR_PX,
  };
}
