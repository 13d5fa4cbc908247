/** Where a text occurs in the transcript: counted, walked through, marked. */

import type { Step } from "./steps";

export type Part = { name: string; text: string; mono: boolean };
/** The nth occurrence within a part of a step. */
export type Match = { step: number; part: number; nth: number };

/** Beyond this nobody walks from one to the next. */
export const MOST_MATCHES = 5_000;

export function partsOf(step: Step): Part[] {
  return [
    { name: "thought", text: step.thought, mono: false },
    { name: step.source === "agent" ? "message" : "prompt", text: step.message, mono: false },
    ...step.calls.map((call) => ({ name: call.name || "call", text: call.text, mono: true })),
    { name: "output", text: step.output, mono: true },
  ].filter((part) => part.text);
}

export function patternOf(wanted: string): RegExp | null {
  return wanted ? new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null;
}

export function matchesIn(steps: Step[], wanted: string): Match[] {
  const pattern = patternOf(wanted);
  const found: Match[] = [];
  if (!pattern) return found;
  for (const [step, one] of steps.entries()) {
    for (const [part, { text }] of partsOf(one).entries()) {
      pattern.lastIndex = 0;
      for (let nth = 0; pattern.test(text); nth += 1) {
        found.push({ step, part, nth });
        if (found.length === MOST_MATCHES) return found;
      }
    }
  }
  return found;
}
