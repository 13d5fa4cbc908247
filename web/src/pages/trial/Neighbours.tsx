/** The way through a job's trials, one after the other: by link, or with the keys [ and ]. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";

import { api, unwrap } from "@/api/client";
import { buttonLook } from "@/parts/Button";
import { useFilters } from "@/parts/Filters";
import { count } from "@/parts/format";

export function Neighbours({ trial }: { trial: number }) {
  const [filters] = useFilters();
  const navigate = useNavigate();
  const around = useQuery({
    queryKey: ["neighbours", trial],
    queryFn: () =>
      unwrap(api.GET("/api/v1/trials/{trial_id}/neighbours", { params: { path: { trial_id: trial } } })),
  });
  const { previous, next, place, total } = around.data ?? {};
  // Who compares one tab of many trials stays in it.
  const search = filters.tab ? { tab: filters.tab } : {};
  const tab = filters.tab;
  useEffect(() => {
    function press(event: KeyboardEvent) {
      const to = event.key === "[" ? previous : event.key === "]" ? next : null;
      if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
      if ((event.target as HTMLElement).closest("input, textarea, select, [contenteditable], .xterm")) return;
      void navigate({ to: "/trials/$trial", params: { trial: String(to) }, search: (tab ? { tab } : {}) as never });
    }
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [previous, next, tab, navigate]);
  const way = (to: number | null | undefined, name: string, text: string) =>
    to ? (
      <Link
        to="/trials/$trial"
        params={{ trial: String(to) }}
        search={search as never}
        className={buttonLook("quiet")}
        aria-label={name}
      >
        {text}
      </Link>
    ) : (
      <span className="inline-flex h-7 items-center px-2.5 text-sm font-medium text-ink-faint" aria-hidden>
        {text}
      </span>
    );
  return (
    <nav aria-label="Trials of the job" className="-mb-1 flex min-h-7 items-center gap-1 text-sm text-ink-soft">
      {way(previous, "Previous trial", "‹ Previous")}
      <span>{total ? `trial ${count(place)} of ${count(total)}` : ""}</span>
      {way(next, "Next trial", "Next ›")}
    </nav>
  );
}
