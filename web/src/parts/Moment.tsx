import { useNow } from "./clock";
import { ago, duration, exact } from "./format";

/** Relative in lists, exact on hover, and never stale while the page is open. */
export function Moment({ at }: { at: string | null | undefined }) {
  const now = useNow(at ? 10_000 : null);
  return at ? (
    <time dateTime={at} title={exact(at)}>
      {ago(at, now)}
    </time>
  ) : (
    <span>–</span>
  );
}

/** How long it took, or has taken until now. */
export function Elapsed({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const now = useNow(from && !to ? 1000 : null);
  return <span>{duration(elapsed(from, to, now))}</span>;
}

export function elapsed(
  from: string | null | undefined,
  to: string | null | undefined,
  now = Date.now(),
): number | null {
  return from ? Math.max(0, ((to ? Date.parse(to) : now) - Date.parse(from)) / 1000) : null;
}
