/** Scores as the service says them. Nothing is computed here; each score belongs to one configuration. */

import type { Schemas } from "@/api/client";

import { percent } from "./format";

export type Line = Schemas["ScoreLine"];
type Interval = { low?: number | null; high?: number | null };

/** Less than the last digit that is shown. */
const ALIKE = 0.0005;

/** `± 4.1` where the interval reaches as far up as down, its two ends where it does not. */
export function uncertainty(value: number | null | undefined, { low, high }: Interval): string {
  if (value == null || low == null || high == null) return "";
  const [down, up] = [value - low, high - value];
  if (Math.abs(up - down) < ALIKE) return `± ${(((up + down) / 2) * 100).toFixed(1)}`;
  return `${(low * 100).toFixed(1)} to ${(high * 100).toFixed(1)}`;
}

/** `62.4 % ± 4.1`, or that there is no score. */
export function scoreText(of: Line): string {
  return of.value == null ? "not scored" : [percent(of.value), uncertainty(of.value, of)].filter(Boolean).join(" ");
}

/** How much of the plan the score covers; nothing where that is all of it. */
function coverageText(of: Line): string | null {
  return of.coverage == null || of.valid >= of.planned ? null : `coverage ${percent(of.coverage)}`;
}

/** Errors lower the coverage for good; trials that have not ended do so for now. */
const coverageLook = (of: Line) => (of.valid < of.ended ? "text-error" : "text-ink-soft");

function description(of: Line): string {
  const interval = of.no_interval
    ? `no interval: ${of.no_interval}`
    : of.low != null
      ? `95 % interval ${percent(of.low)} to ${percent(of.high)}`
      : null;
  const coverage = `${of.valid} valid of ${of.planned} planned trials`;
  return [`${of.label}: ${scoreText(of)}`, of.value == null ? null : interval, coverage].filter(Boolean).join("\n");
}

/** The scores of a job on one line of a list: one configuration in full; of several the best, the others on hover. */
export function Scores({ of }: { of: readonly Line[] | null | undefined }) {
  const [best, ...others] = of ?? [];
  if (!best) return <span className="inline-block w-15 text-right text-ink-faint">–</span>;
  const coverage = coverageText(best);
  return (
    <span className="whitespace-nowrap" title={[best, ...others].map(description).join("\n\n")}>
      {best.value == null ? (
        <span className="text-ink-soft">not scored</span>
      ) : (
        <>
          <span className="inline-block w-15 text-right font-semibold">{percent(best.value)}</span>
          {others.length ? null : <span className="text-ink-soft"> {uncertainty(best.value, best)}</span>}
        </>
      )}
      {others.length ? (
        <span className="text-ink-soft">
          {" "}
          {best.label} <span className="text-ink-faint">+{others.length} more</span>
        </span>
      ) : coverage ? (
        <span className={coverageLook(best)}> · {coverage}</span>
      ) : null}
    </span>
  );
}

/** The same for a file: a number for one configuration, `label: number` for each of several. */
export function scoresCell(
  of: readonly Line[] | null | undefined,
  value: (line: Line) => number | string | null | undefined,
): number | string | null | undefined {
  if (!of?.length) return null;
  if (of.length === 1) return value(of[0] as Line);
  return of.map((line) => `${line.label}: ${value(line) ?? "–"}`).join("; ");
}

/** One configuration at the top of its job: the score, then everything one must know to read it. */
export function LargeScore({ of, named }: { of: Line; named: boolean }) {
  const told = uncertainty(of.value, of);
  return (
    <div className="min-w-0" data-score={of.label}>
      <div className="truncate text-xs text-ink-faint" title={of.label}>
        {named ? of.label : "score"}
        {of.ended < of.planned ? ` · so far, ${of.ended} of ${of.planned}` : ""}
      </div>
      <div className="whitespace-nowrap">
        {of.value == null ? (
          <span className="text-2xl text-ink-soft">not scored</span>
        ) : (
          <>
            <span className="text-2xl font-semibold">{percent(of.value)}</span>
            {told ? (
              <span className="text-ink-soft" title="95 % interval, with the tasks as a sample">
                {" "}
                {told}
              </span>
            ) : null}
          </>
        )}
      </div>
      <Particulars of={of} />
    </div>
  );
}

function Particulars({ of }: { of: Line }) {
  const { bounds } = of;
  return (
    <ul className="flex flex-wrap gap-x-3 text-xs text-ink-soft">
      <li className={of.valid < of.ended ? "text-error" : ""} title={`${of.valid} valid of ${of.planned} planned trials`}>
        coverage {percent(of.coverage)}
      </li>
      {of.value == null ? null : (
        <>
          <li title="As leaderboards count: every error as 0">errors as 0: {percent(of.leaderboard)}</li>
          {of.no_interval ? <li>no interval: {of.no_interval}</li> : null}
          {bounds ? (
            <li title={`If all ${bounds.trials} trials without a valid result had failed, or passed`}>
              bounds {(bounds.low * 100).toFixed(1)} to {percent(bounds.high)}
            </li>
          ) : null}
        </>
      )}
    </ul>
  );
}
