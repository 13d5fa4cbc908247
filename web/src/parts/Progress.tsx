import type { Schemas } from "@/api/client";

type Counts = Schemas["TrialCounts"];

const PARTS: [keyof Counts, string][] = [
  ["passed", "bg-passed"],
  ["failed", "bg-failed"],
  ["error", "bg-error"],
  ["cancelled", "bg-line-strong"],
];

export function endedOf(counts: Counts): number {
  return counts.passed + counts.failed + counts.error + counts.cancelled;
}

/** How far a job is: the bar fills with what ended. */
export function Progress({ counts }: { counts: Counts }) {
  const ended = endedOf(counts);
  const told = `${ended} of ${counts.total} trials ended: ${counts.passed} passed, ${counts.failed} failed, ${counts.error} errors`;
  return (
    <span className="inline-flex w-full items-center gap-2 align-bottom" title={told}>
      <span role="img" aria-label={told} className="flex h-1.5 min-w-16 grow overflow-hidden rounded-full bg-raised">
        {PARTS.map(([name, colour]) =>
          counts[name] ? (
            <span
              key={name}
              className={colour}
              style={{ width: `${(100 * counts[name]) / Math.max(counts.total, 1)}%` }}
            />
          ) : null,
        )}
      </span>
      <span className="min-w-10 text-right text-xs whitespace-nowrap text-ink-soft">
        {ended}/{counts.total}
      </span>
    </span>
  );
}
