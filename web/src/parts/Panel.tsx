import type { ReactNode } from "react";

/** A titled area. Nothing in it jumps: give it a `minHeight` where content arrives later. */
export function Panel({
  title,
  side,
  children,
  minHeight,
  flush = false,
}: {
  title?: ReactNode;
  side?: ReactNode;
  children: ReactNode;
  minHeight?: number;
  flush?: boolean;
}) {
  return (
    <section
      aria-label={typeof title === "string" ? title : undefined}
      className="min-w-0 rounded-lg border bg-panel"
      style={{ minHeight }}
    >
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

/** Numbers in a row; on a narrow screen in columns, so that they still line up. */
export function Figures({ children, end = false }: { children: ReactNode; end?: boolean }) {
  return (
    <div className={`grid grid-cols-2 gap-x-7 gap-y-3 sm:flex sm:flex-wrap ${end ? "sm:items-end" : ""}`}>
      {children}
    </div>
  );
}

/** One number with its name. */
export function Figure({ name, value, hint }: { name: string; value: ReactNode; hint?: string }) {
  return (
    <div className="min-w-0" title={hint}>
      <div className="truncate text-xs text-ink-faint" title={name}>
        {name}
      </div>
      <div className="text-base font-semibold whitespace-nowrap">{value}</div>
    </div>
  );
}
