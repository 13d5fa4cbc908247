/** What a running trial has sent so far. Terminal output comes as lines of an asciicast; pieces may cut a line in two. */

import type { LiveEvent } from "@/api/live";
import { type Call, callOf, type Sums, sumsOf } from "./calls";
import type { Begun } from "./phases";
import type { Step } from "./steps";

export type Size = { width: number; height: number };
type Listener = { write: (text: string) => void; resize: (size: Size) => void };

export type LiveTerminal = ReturnType<typeof liveTerminal>;

const KEPT = 400_000;
/** The newest calls; the whole record is there when the try has ended. */
const CALLS = 2_000;
/** A terminal's own word for "forget everything". */
const RESET = "\x1bc";

export function liveTerminal() {
  let tryNumber = 0;
  let rest = "";
  let shown = "";
  let size: Size = { width: 160, height: 40 };
  let steps: Step[] = [];
  let phases: Begun[] = [];
  let calls: Call[] = [];
  let sums: Sums = sumsOf(null);
  const listeners = new Set<Listener>();

  function put(text: string) {
    shown = (shown + text).slice(-KEPT);
    for (const listener of listeners) listener.write(text);
  }

  function line(text: string) {
    try {
      const parsed = JSON.parse(text) as unknown;
      if (Array.isArray(parsed)) {
        if (parsed[1] === "o") put(String(parsed[2]));
      } else if (parsed && typeof parsed === "object" && "width" in parsed) {
        size = sizeOf(parsed as Record<string, unknown>, size);
        for (const listener of listeners) listener.resize(size);
      }
    } catch {
      // The beginning of the line was sent before this page listened.
    }
  }

  /** A new try begins with an empty screen. */
  function begin(event: LiveEvent) {
    if (event.tryNumber == null || event.tryNumber <= tryNumber) return;
    if (tryNumber) put(RESET);
    [tryNumber, rest, shown, steps, phases] = [event.tryNumber, "", "", [], []];
    [calls, sums] = [[], sumsOf(null)];
  }

  function output(data: Record<string, unknown>) {
    if (data.stream !== "terminal") return;
    const lines = (rest + String(data.text)).split("\n");
    rest = lines.pop() ?? "";
    for (const one of lines) line(one);
  }

  return {
    receive(event: LiveEvent) {
      begin(event);
      if (event.kind === "trial.output") output(event.data);
      else if (event.kind === "trial.step") {
        const step = stepOf(event, steps.length + 1);
        if (!steps.some((known) => known.number === step.number)) steps = [...steps, step];
      } else if (event.kind === "trial.calls" && event.tryNumber === tryNumber) {
        const told = Array.isArray(event.data.calls) ? event.data.calls : [];
        const next = sumsOf(event.data.sums);
        // After a lost line, what was told before may come again.
        if (next.calls + next.refused <= sums.calls + sums.refused) return;
        calls = [...calls, ...told.flatMap((call, index) => callOf(call, calls.length + index + 1) ?? [])].slice(-CALLS);
        sums = next;
      } else if (event.kind === "trial.phase" && event.at != null && event.tryNumber === tryNumber) {
        const begun = { phase: String(event.data.phase), step: String(event.data.step ?? ""), at: event.at };
        if (begun.at > (phases.at(-1)?.at ?? 0)) phases = [...phases, begun];
      }
    },
    steps: () => steps,
    phases: () => phases,
    calls: () => calls,
    sums: () => sums,
    size: () => size,
    /** All so far, then whatever comes. */
    listen(write: Listener["write"], resize: Listener["resize"]) {
      const listener = { write, resize };
      if (shown) write(shown);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function stepOf({ data, at }: LiveEvent, next: number): Step {
  const tools = Array.isArray(data.tools) ? (data.tools as Record<string, unknown>[]) : [];
  return {
    number: Number(data.step ?? next),
    source: String(data.source ?? "agent"),
    at,
    message: String(data.message ?? ""),
    thought: "",
    output: "",
    calls: tools.map((tool) => ({ name: String(tool.name ?? ""), text: String(tool.input ?? "") })),
    inputTokens: Number(data.input_tokens ?? 0),
    outputTokens: Number(data.output_tokens ?? 0),
    cost: Number(data.cost_usd ?? 0),
    raw: null,
  };
}

/** Of the recording's head, which comes from a sandbox: anything but a sensible size is ignored. */
function sizeOf(head: Record<string, unknown>, usual: Size): Size {
  const sensible = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) > 0 && (value as number) <= 1000;
  return sensible(head.width) && sensible(head.height) ? { width: head.width, height: head.height } : usual;
}
