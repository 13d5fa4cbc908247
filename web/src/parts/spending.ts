/** What is left of caps on models, in words. */

import type { Schemas } from "@/api/client";
import { count, money } from "./format";

type Cap = Schemas["Cap"];
type Spent = Schemas["DayBudget"]["spending"];

export type Left = { unit: "dollars" | "tokens" | "calls"; left: string; of: string; share: number; spent: boolean };

/** One for each kind of cap. What calls under way are expected to cost is not left any more. */
export function leftOf(cap: Cap, spending: Spent): Left[] {
  const kinds = [
    ["dollars", cap.dollars, money],
    ["tokens", cap.tokens, count],
    ["calls", cap.calls, count],
  ] as const;
  return kinds.flatMap(([unit, most, shown]) => {
    if (most == null) return [];
    const left = Math.max(0, most - (spending.spent?.[unit] ?? 0) - (spending.in_flight?.[unit] ?? 0));
    return [{ unit, left: shown(left), of: shown(most), share: left / most, spent: left <= 0 }];
  });
}

/** `$1.20 of $5.00`, `31 of 100 calls`. */
export function leftText({ unit, left, of }: Left): string {
  return unit === "dollars" ? `${left} of ${of}` : `${left} of ${of} ${unit}`;
}

/** `$0.42 · 12.3k tokens · 31 calls`; nothing before the first call. */
export function spentText({ dollars, tokens, calls }: { dollars: number | null; tokens: number; calls: number }): string {
  if (!calls) return "";
  const counted = [`${count(tokens)} tokens`, calls === 1 ? "1 call" : `${count(calls)} calls`];
  return [...(dollars == null ? [] : [money(dollars)]), ...counted].join(" · ");
}

/** Which text of a form is no cap: a positive number, whole for tokens and calls. Empty is no cap, and right. */
export function capProblem(name: string, text: string, whole: boolean): string {
  const value = text.trim();
  if (!value) return "";
  const number = Number(value);
  if (!Number.isFinite(number) || number <= 0) return `${name} must be more than 0.`;
  if (whole && !Number.isInteger(number)) return `${name} must be a whole number.`;
  if (number > (whole ? 1e15 : 1e9)) return `${name} is too large.`;
  return "";
}
