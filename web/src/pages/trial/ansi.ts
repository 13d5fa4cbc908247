/** Colours of a terminal's output as styles; every other escape sequence is dropped. The result is text, never markup. */

import type { CSSProperties } from "react";

export type Span = { text: string; style?: CSSProperties };

const COLOURS = ["#7b8a8e", "#ff8f86", "#7fd99f", "#f0c674", "#86b6ff", "#d6a6ff", "#6fd6d0", "#dfe8e8"];
const BRIGHT = ["#9db0b5", "#ffb3ac", "#a8ecc0", "#ffe09c", "#b3d2ff", "#e6c8ff", "#a3efe9", "#ffffff"];
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[@-Z\\-_])/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

export function spansOf(line: string): Span[] {
  const spans: Span[] = [];
  let style: CSSProperties = {};
  let from = 0;
  const put = (text: string) => {
    const clean = text.replace(CONTROL, "");
    if (clean) spans.push({ text: clean, style: Object.keys(style).length ? style : undefined });
  };
  for (const match of line.matchAll(ESCAPE)) {
    put(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m") style = restyled(style, match[1] ?? "");
  }
  put(line.slice(from));
  return spans;
}

/** The same without colours. */
export const plainText = (text: string): string => text.replace(ESCAPE, "").replace(CONTROL, "");

function restyled(old: CSSProperties, codes: string): CSSProperties {
  const numbers = codes.split(";").map((code) => Number(code || 0));
  let style = { ...old };
  for (let index = 0; index < numbers.length; index += 1) {
    const code = numbers[index] as number;
    if (code === 0) style = {};
    else if (code === 1) style.fontWeight = 700;
    else if (code === 3) style.fontStyle = "italic";
    else if (code === 4) style.textDecoration = "underline";
    else if (code === 22) delete style.fontWeight;
    else if (code === 39) delete style.color;
    else if (code >= 30 && code <= 37) style.color = COLOURS[code - 30];
    else if (code >= 90 && code <= 97) style.color = BRIGHT[code - 90];
    else if (code === 38 && numbers[index + 1] === 2) {
      style.color = `rgb(${numbers
        .slice(index + 2, index + 5)
        .map((part) => Math.min(255, part || 0))
        .join(",")})`;
      index += 4;
    } else if ((code === 38 || code === 48) && numbers[index + 1] === 5) {
      if (code === 38) style.color = palette(numbers[index + 2] ?? 7);
      index += 2;
    } else if (code === 48) index += 4;
  }
  return style;
}

function palette(number: number): string {
  if (number < 8) return COLOURS[number] as string;
  if (number < 16) return BRIGHT[number - 8] as string;
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return `rgb(${grey},${grey},${grey})`;
  }
  const cube = number - 16;
  const level = (part: number) => (part ? 55 + part * 40 : 0);
  return `rgb(${level(Math.floor(cube / 36))},${level(Math.floor(cube / 6) % 6)},${level(cube % 6)})`;
}
