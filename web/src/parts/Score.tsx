import type { Schemas } from "@/api/client";

import { percent } from "./format";

type Interval = { low?: number | null; high?: number | null };

/** `± 4.1` where the interval reaches as far up as down, its two ends where it does not. */
export function uncertainty(value: number, { low, high }: Interval): string {
  // No spread was seen; that does not prove that there is none.
  if (low == null || high == null || low === high) return "";
  const [down, up] = [value - low, high - value];
  if (Math.abs(up - down) < 0.005) return `± ${(((up + down) / 2) * 100).toFixed(1)}`;
  return `${(low * 100).toFixed(1)} to ${(high * 100).toFixed(1)}`;
}

/** A score with its uncertainty, and its coverage where that is not whole. */
export function Score({ of, large = false }: { of: Schemas["ScoreLine"] | null | undefined; large?: boolean }) {
  if (of?.value == null)
    return <span className={large ? "text-2xl text-ink-faint" : "inline-block w-15 text-right text-ink-faint"}>–</span>;
  const told = uncertainty(of.value, of);
  return (
    <span
      className="whitespace-nowrap"
      title={told ? `95 % interval: ${percent(of.low)} to ${percent(of.high)}` : "Too few trials for an interval"}
    >
      <span className={large ? "text-2xl font-semibold" : "inline-block w-15 text-right font-semibold"}>
        {percent(of.value)}
      </span>
      {told ? <span className="text-ink-soft"> {told}</span> : null}
      {of.coverage != null && of.coverage < 0.9995 ? (
        <span className="text-error"> · {percent(of.coverage)} covered</span>
      ) : null}
    </span>
  );
}
