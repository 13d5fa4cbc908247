/** The calls of a try as the gate wrote them down, one line each. Whatever is not a number or a text is left out. */

export type Call = {
  number: number;
  at: number | null;
  model: string;
  /** Nothing if there was no answer. */
  status: number | null;
  /** Requests to the provider; 0 if the call was refused here. */
  tries: number;
  waited: number;
  first: number | null;
  seconds: number;
  input: number | null;
  cached: number | null;
  cacheWrite: number | null;
  output: number | null;
  reasoning: number | null;
  cost: number | null;
  costBy: string;
  finish: string;
  clampedTo: number | null;
  overBudget: boolean;
  error: string;
};

/** What all calls of a try used so far. */
export type Sums = { calls: number; refused: number; tokens: number; cost: number | null; waited: number };

type Raw = Record<string, unknown>;

export function callsOf(lines: string): Call[] {
  return lines.split("\n").flatMap((line, index) => {
    try {
      return callOf(JSON.parse(line), index + 1) ?? [];
    } catch {
      return []; // the last line of a try whose worker was killed may be torn
    }
  });
}

export function callOf(line: unknown, number: number): Call | null {
  if (!line || typeof line !== "object" || Array.isArray(line)) return null;
  const raw = line as Raw;
  const usage = (typeof raw.usage === "object" && raw.usage ? raw.usage : {}) as Raw;
  const at = Date.parse(text(raw.at));
  return {
    number,
    at: Number.isNaN(at) ? null : at,
    model: text(raw.model),
    status: count(raw.status),
    tries: count(raw.tries) ?? 1,
    waited: count(raw.waited_sec) ?? 0,
    first: count(raw.first_token_sec),
    seconds: count(raw.seconds) ?? 0,
    input: count(usage.input_tokens),
    cached: count(usage.cached_tokens),
    cacheWrite: count(usage.cache_write_tokens),
    output: count(usage.output_tokens),
    reasoning: count(usage.reasoning_tokens),
    cost: count(raw.cost_usd),
    costBy: text(raw.cost_by),
    finish: text(raw.finish_reason),
    clampedTo: count(raw.clamped_to),
    overBudget: raw.over_budget === true,
    error: text(raw.error),
  };
}

export function sumsOf(sums: unknown): Sums {
  const raw = (sums && typeof sums === "object" ? sums : {}) as Raw;
  const usage = (raw.usage && typeof raw.usage === "object" ? raw.usage : {}) as Raw;
  return {
    calls: count(raw.calls) ?? 0,
    refused: count(raw.refused) ?? 0,
    tokens: (count(usage.input_tokens) ?? 0) + (count(usage.output_tokens) ?? 0),
    cost: count(raw.cost_usd),
    waited: count(raw.waited_sec) ?? 0,
  };
}

/** How it ended, in a word or a sentence. */
export function ending(call: Call): string {
  if (call.error) return call.error;
  if (call.overBudget) return "cut: the budget was used up";
  return call.finish;
}

function count(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
