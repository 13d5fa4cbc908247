/** The launch form as an address, short enough to be sent: only what differs from the empty form, tasks by the first digits of their digests. */

import { EMPTY, type Wish } from "./wish";

/** Enough for any library. A link that fits two tasks says so. */
const DIGITS = 10;
const PREFIX = "sha256:";

type Search = Record<string, string>;

const LISTS = ["agents", "models"] as const;
const TEXTS = [
  "name",
  "dataset",
  "concurrency",
  "sandbox",
  "timeoutMultiplier",
  "maxRetries",
  "options",
  "margin",
  "alpha",
  "jobDollars",
  "jobTokens",
  "jobCalls",
  "trialDollars",
  "trialTokens",
  "trialCalls",
] as const;

export function searchOf(wish: Wish): Search {
  const found: Search = {};
  if (wish.tasks.length && !wish.dataset) found.tasks = tasksLink(wish.tasks);
  for (const name of LISTS) if (wish[name].join() !== EMPTY[name].join()) found[name] = wish[name].join(",");
  for (const name of TEXTS) if (wish[name] !== EMPTY[name]) found[name] = wish[name];
  if (wish.attempts !== EMPTY.attempts) found.attempts = String(wish.attempts);
  if (wish.forceBuild) found.forceBuild = "yes";
  if (wish.untilSettled) found.untilSettled = "yes";
  return found;
}

/** The tasks are as the address has them: `wholeDigests` looks them up. */
export function wishOf(search: Search): Wish {
  const wish: Wish = { ...EMPTY, tasks: split(search.tasks) };
  for (const name of LISTS) if (search[name] !== undefined) wish[name] = split(search[name]);
  for (const name of TEXTS) if (search[name] !== undefined) wish[name] = search[name];
  wish.attempts = Math.max(1, Number(search.attempts) || EMPTY.attempts);
  wish.forceBuild = search.forceBuild === "yes";
  wish.untilSettled = search.untilSettled === "yes";
  return wish;
}

export function tasksLink(digests: string[]): string {
  return digests.map((digest) => digest.replace(PREFIX, "").slice(0, DIGITS)).join(",");
}

/** Each task of an address as a whole digest, and those that no task or more than one fits. */
export function wholeDigests(asked: string[], known: string[]): { digests: string[]; unknown: string[] } {
  const digests: string[] = [];
  const unknown: string[] = [];
  for (const part of asked) {
    const fitting = known.filter((digest) => digest.replace(PREFIX, "").startsWith(part.replace(PREFIX, "")));
    if (fitting.length === 1) digests.push(fitting[0]!);
    else unknown.push(part);
  }
  return { digests, unknown };
}

const split = (value: string | undefined) => (value ?? "").split(",").filter(Boolean);
