/** What a running trial has sent so far. Terminal output comes as lines of an asciicast; pieces may cut a line in two. */

import { type Step } from "./steps";

type Listener = (text: string) => void;

export type LiveTerminal = ReturnType<typeof liveTerminal>;

const KEPT = 400_000;

export function liveTerminal() {
  let rest = "";
  let shown = "";
  let size = { width: 160, height: 40 };
  const steps: Step[] = [];
  const listeners = new Set<Listener>();
  const logs = new Map<string, string>();

  function put(text: string) {
    shown = (shown + text).slice(-KEPT);
    for (const listener of listeners) listener(text);
  }

  function line(text: string) {
    try {
      const parsed = JSON.parse(text) as unknown;
      if (Array.isArray(parsed)) {
        if (parsed[1] === "o") put(String(parsed[2]));
      } else if (parsed && typeof parsed === "object" && "width" in parsed) {
        const head = parsed as { width: number; height: number };
        size = { width: head.width, height: head.height };
      }
    } catch {
      // The beginning of the line was sent before this page listened.
    }
  }

  return {
    receive(data: Record<string, unknown>) {
      const [stream, text] = [String(data.stream), String(data.text)];
      if (stream !== "terminal") {
        logs.set(stream, ((logs.get(stream) ?? "") + text).slice(-KEPT));
        return;
      }
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const one of lines) line(one);
    },
    step(data: Record<string, unknown>) {
      const number = Number(data.step ?? steps.length + 1);
      if (steps.some((known) => known.number === number)) return;
      const tools = Array.isArray(data.tools) ? (data.tools as Record<string, unknown>[]).map((tool) => ({ name: String(tool.name), text: String(tool.input ?? "") })) : [];
      steps.push({
        number, source: String(data.source ?? "agent"), at: null, message: String(data.message ?? ""), thought: "", calls: tools, output: "",
        inputTokens: Number(data.input_tokens ?? 0), outputTokens: Number(data.output_tokens ?? 0), cost: Number(data.cost_usd ?? 0),
      });
    },
    steps: () => [...steps],
    size: () => size,
    /** All so far, then whatever comes. */
    listen(listener: Listener) {
      if (shown) listener(shown);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    log: (stream: string) => logs.get(stream) ?? "",
  };
}
