import type { ReactNode } from "react";

/** A titled area. Nothing in it jumps: give it a `minHeight` where content arrives later. */
export function Panel({ title, side, children, minHeight, flush = false }: {
  title?: ReactNode;
  side?: ReactNode;
  children: ReactNode;
  minHeight?: number;
  flush?: boolean;
}) {
  return (
    <section className="min-w-0 rounded-lg border bg-panel" style={{ minHeight }}>
      {title ? (
        <header className="flex min-h-9 items-center justify-between gap-3 border-b px-3 py-1.5">
          <h2>{title}</h2>
          {side}
        </header>
      ) : null}
      <div className={flush ? "" : "p-3"}>{children}</div>
    </section>
  );
}

/** One number with its name. */
export function Figure({ name, value, hint }: { name: string; value: ReactNode; hint?: string }) {
  return (
    <div className="min-w-0" title={hint}>
      <div className="text-xs whitespace-nowrap text-ink-faint">{name}</div>
      <div className="text-base font-semibold whitespace-nowrap">{value}</div>
    </div>
  );
}
