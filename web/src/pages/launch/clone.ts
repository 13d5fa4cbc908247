/** The form filled with what another job asked for. */

import type { Schemas } from "@/api/client";
import { EMPTY, type Wish } from "./wish";

type Spec = Schemas["JobSpec"];
type Agent = Spec["agents"][number];

export function cloneOf(job: Schemas["JobDetail"]): Wish {
  const { spec } = job;
  return {
    ...EMPTY,
    ...agentsOf(spec.agents),
    name: spec.name ?? "",
    tasks: spec.tasks.map((task) => task.digest),
    dataset: spec.dataset ?? "",
    attempts: spec.attempts ?? EMPTY.attempts,
    concurrency: spec.concurrency == null ? "" : String(spec.concurrency),
    sandbox: spec.sandbox ?? EMPTY.sandbox,
    timeoutMultiplier: String(spec.timeout_multiplier ?? EMPTY.timeoutMultiplier),
    maxRetries: String((spec.retry?.max_attempts ?? 2) - 1),
    forceBuild: spec.force_build ?? false,
    untilSettled: spec.until_settled != null,
    margin: String(spec.until_settled?.margin ?? EMPTY.margin),
    alpha: String(spec.until_settled?.alpha ?? EMPTY.alpha),
    jobDollars: capText(spec.budget?.job?.dollars),
    jobTokens: capText(spec.budget?.job?.tokens),
    jobCalls: capText(spec.budget?.job?.calls),
    trialDollars: capText(spec.budget?.trial?.dollars),
    trialTokens: capText(spec.budget?.trial?.tokens),
    trialCalls: capText(spec.budget?.trial?.calls),
  };
}

/** As agents × models where that gives the same configurations; else one by one, as they were. */
function agentsOf(agents: Agent[]): Pick<Wish, "agents" | "models" | "configurations"> {
  const names = distinct(agents.map((agent) => agent.name));
  const models = distinct(agents.flatMap((agent) => agent.model ?? []));
  const plain = agents.every((agent) => isEmpty(agent.options) && isEmpty(agent.env));
  const whole = names.every((name) => {
    const own = agents.filter((agent) => agent.name === name);
    return own.every((agent) => !agent.model) ? own.length === 1 : own.length === models.length;
  });
  if (plain && whole) return { agents: names, models, configurations: [] };
  return { agents: names, models, configurations: agents };
}

const capText = (value: number | null | undefined) => (value == null ? "" : String(value));
const distinct = (values: string[]) => [...new Set(values)];
const isEmpty = (value: object | undefined) => !value || !Object.keys(value).length;
