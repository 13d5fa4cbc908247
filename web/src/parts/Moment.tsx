import { useEffect, useState } from "react";

import { ago, exact } from "./format";

/** Relative in lists, exact on hover, and never stale while the page is open. */
export function Moment({ at }: { at: string | null | undefined }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 10_000);
    return () => clearInterval(timer);
  }, []);
  return at ? <time dateTime={at} title={exact(at)}>{ago(at, now)}</time> : <span>–</span>;
}
