/** An agent's trajectory (ATIF) as the page shows it: nothing in it is trusted, everything in it is text. */

export type Step = {
  number: number;
  source: string;
  at: number | null;
  message: string;
  thought: string;
  calls: { name: string; text: string }[];
  output: string;
  inputTokens: number;
  outputTokens: number;
  cost: number;
  /** As it was recorded; nothing while it runs. */
  raw: unknown;
};

type Raw = Record<string, unknown>;

export function stepsOf(trajectory: unknown): Step[] {
  const steps = (trajectory as Raw | null)?.steps;
  return Array.isArray(steps) ? steps.map((step, index) => stepOf(step as Raw, index)) : [];
}

export function stepOf(raw: Raw, index: number): Step {
  const metrics = (raw.metrics ?? {}) as Raw;
  const calls = Array.isArray(raw.tool_calls) ? (raw.tool_calls as Raw[]) : [];
  const results = ((raw.observation as Raw | undefined)?.results ?? []) as Raw[];
  return {
    number: number(raw.step_id) || index + 1,
    source: text(raw.source) || "agent",
    at: raw.timestamp ? Date.parse(text(raw.timestamp)) : null,
    message: text(raw.message),
    thought: text(raw.reasoning_content),
    calls: calls.map((call) => ({ name: text(call.function_name), text: callText(call.arguments) })),
    output: Array.isArray(results)
      ? results
          .map((result) => text(result.content))
          .join("\n")
          .replace(/\n{3,}/g, "\n\n")
      : "",
    inputTokens: number(metrics.prompt_tokens),
    outputTokens: number(metrics.completion_tokens),
    cost: number(metrics.cost_usd),
    raw,
  };
}

/** The first line that says what the step is about. */
export function title(step: Step): string {
  const keys = step.calls.map((call) => call.text).find((call) => call.trim());
  return (keys ?? step.message).trim().split("\n")[0]?.slice(0, 160) || step.source;
}

export function matches(step: Step, wanted: string): boolean {
  const needle = wanted.toLowerCase();
  return [step.message, step.thought, step.output, ...step.calls.map((call) => call.text)].some((part) =>
    part.toLowerCase().includes(needle),
  );
}

function callText(value: unknown): string {
  const given = value as Raw | undefined;
  if (given && typeof given.keystrokes === "string") return given.keystrokes;
  if (given && typeof given.command === "string") return given.command;
  return given && Object.keys(given).length ? JSON.stringify(given) : "";
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((part) => text((part as Raw)?.text ?? part)).join("\n");
  return value == null ? "" : JSON.stringify(value);
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
