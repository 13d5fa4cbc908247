/** What the launch form holds, and the request that it becomes. The page and the copied commands come from the same place. */

import type { Schemas } from "@/api/client";
import { capProblem } from "@/parts/spending";

export type Wish = {
  name: string;
  tasks: string[];
  dataset: string;
  agents: string[];
  models: string[];
  /** Agents with options of their own, as another job had them. They replace agents × models. */
  configurations: Schemas["AgentRequest"][];
  attempts: number;
  concurrency: string;
  sandbox: string;
  timeoutMultiplier: string;
  maxRetries: string;
  options: string;
  forceBuild: boolean;
  untilSettled: boolean;
  margin: string;
  alpha: string;
  jobDollars: string;
  jobTokens: string;
  jobCalls: string;
  trialDollars: string;
  trialTokens: string;
  trialCalls: string;
};

export const EMPTY: Wish = {
  name: "",
  tasks: [],
  dataset: "",
  agents: ["oracle"],
  models: [],
  configurations: [],
  attempts: 1,
  concurrency: "",
  sandbox: "auto",
  timeoutMultiplier: "1",
  maxRetries: "1",
  options: "",
  forceBuild: false,
  untilSettled: false,
  margin: "3",
  alpha: "0.05",
  jobDollars: "",
  jobTokens: "",
  jobCalls: "",
  trialDollars: "",
  trialTokens: "",
  trialCalls: "",
};

/** The caps of the form, with the names that its errors use. */
export const CAPS = [
  { field: "jobDollars", name: "Dollars for the job", whole: false },
  { field: "jobTokens", name: "Tokens for the job", whole: true },
  { field: "jobCalls", name: "Calls for the job", whole: true },
  { field: "trialDollars", name: "Dollars for each trial", whole: false },
  { field: "trialTokens", name: "Tokens for each trial", whole: true },
  { field: "trialCalls", name: "Calls for each trial", whole: true },
] as const satisfies readonly { field: keyof Wish; name: string; whole: boolean }[];

export function requestOf(wish: Wish): Schemas["JobRequest"] {
  const request = {
    name: wish.name.trim(),
    tasks: wish.dataset ? [] : wish.tasks,
    dataset: wish.dataset || null,
    agents: wish.configurations.length ? wish.configurations : wish.agents.map((name) => ({ name })),
    models: wish.configurations.length ? [] : wish.models,
    attempts: wish.attempts,
    concurrency: wish.concurrency ? Number(wish.concurrency) : null,
    sandbox: wish.sandbox,
    timeout_multiplier: Number(wish.timeoutMultiplier) || 1,
    ...retryOf(wish.maxRetries),
    options: optionsOf(wish.options),
    force_build: wish.forceBuild,
    until_settled: wish.untilSettled ? { margin: Number(wish.margin) || 3, alpha: Number(wish.alpha) || 0.05 } : null,
    ...budgetOf(wish),
  };
  return request as never;
}

/** Nothing is sent without a cap, so that the copied commands stay short. */
function budgetOf(wish: Wish) {
  const cap = (dollars: string, tokens: string, calls: string) => {
    const given = Object.entries({ dollars, tokens, calls }).filter(([, value]) => value.trim());
    return given.length ? Object.fromEntries(given.map(([name, value]) => [name, Number(value)])) : null;
  };
  const job = cap(wish.jobDollars, wish.jobTokens, wish.jobCalls);
  const trial = cap(wish.trialDollars, wish.trialTokens, wish.trialCalls);
  return job || trial ? { budget: { ...(job ? { job } : {}), ...(trial ? { trial } : {}) } } : {};
}

/** The API counts the first try, too. Nothing is sent for the default, so that the copied commands stay short. */
function retryOf(retries: string) {
  return retries === EMPTY.maxRetries || !retries ? {} : { retry: { max_attempts: Number(retries) + 1 } };
}

/** `temperature=0.2 max_turns=30`: values are JSON where they can be, else text. */
export function optionsOf(text: string): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [name, ...rest] = word.split("=");
    if (!name || !rest.length) continue;
    const value = rest.join("=");
    try {
      found[name] = JSON.parse(value);
    } catch {
      found[name] = value;
    }
  }
  return found;
}

/** Why it cannot be launched yet, in one sentence. */
export function lacking(wish: Wish, agents: Schemas["AgentItem"][]): string {
  if (!wish.dataset && !wish.tasks.length) return "Choose at least one task or a dataset.";
  const wrong = CAPS.map(({ field, name, whole }) => capProblem(name, wish[field], whole)).find(Boolean);
  if (wrong) return wrong;
  if (wish.configurations.length) return "";
  if (!wish.agents.length) return "Choose at least one agent.";
  const needy = wish.models.length
    ? []
    : agents.filter((agent) => agent.needs_model && wish.agents.includes(agent.name));
  if (needy.length) return `Choose a model for ${needy.map((agent) => agent.name).join(", ")}.`;
  return "";
}
