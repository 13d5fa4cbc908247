/** What a trial went through, on the clock. While it runs, the last phase reaches until now. */

import type { Schemas } from "@/api/client";

export type Phase = { phase: string; name: string; from: number; seconds: number };
/** A phase that began, as events tell it. */
export type Begun = { phase: string; step: string; at: number };

const WORDS: Record<string, string> = {
  preparing: "prepare",
  build: "build",
  start: "start",
  agent_setup: "set up agent",
  agent: "agent",
  verify: "verify",
  saving: "save",
};

export function phaseName(phase: string, step?: string | null): string {
  return `${WORDS[phase] ?? phase}${step ? ` ${step}` : ""}`;
}

export function recordedPhases(timings: Schemas["PhaseTiming"][]): Phase[] {
  return timings.map(({ phase, step, started_at, seconds }) => ({
    phase,
    name: phaseName(phase, step),
    from: Date.parse(started_at),
    seconds,
  }));
}

export function phasesUntil(begun: Begun[], now: number): Phase[] {
  return begun.map(({ phase, step, at }, index) => ({
    phase,
    name: phaseName(phase, step),
    from: at,
    seconds: Math.max(0, ((begun[index + 1]?.at ?? now) - at) / 1000),
  }));
}
