/** Filters and order of a list under a name: saved in the service, for everybody who uses it. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "./Button";
import { FIELD } from "./field";
import { useFilters } from "./Filters";
import { Trouble } from "./Notice";

/** What is no part of a view: where somebody is within the page. */
const ELSEWHERE = ["tab", "find", "step", "file", "log", "try"];

export function SavedViews({ page }: { page: Schemas["ViewPage"] }) {
  const [search] = useFilters();
  const navigate = useNavigate();
  const views = useQuery({ queryKey: ["views"], queryFn: () => unwrap(api.GET("/api/v1/views")) });
  const { busy, error, act } = useAct(["views"]);
  const [name, setName] = useState<string | null>(null);
  const query = queryOf(search);
  const mine = (views.data?.items ?? []).filter((view) => view.page === page);
  const shown = mine.find((view) => query !== "" && queryOf(Object.fromEntries(new URLSearchParams(view.query))) === query);

  function open(id: string) {
    const view = mine.find((one) => String(one.id) === id);
    const kept = Object.fromEntries(ELSEWHERE.flatMap((part) => (search[part] ? [[part, search[part]]] : [])));
    const chosen = view ? Object.fromEntries(new URLSearchParams(view.query)) : {};
    void navigate({ to: ".", search: { ...chosen, ...kept } as never });
  }
  async function save(event: FormEvent) {
    event.preventDefault();
    if (name?.trim() && (await act(() => api.POST("/api/v1/views", { body: { page, name: name.trim(), query } }))))
      setName(null);
  }
  return (
    <div className="flex flex-wrap items-center gap-2" role="group" aria-label="Saved views">
      <label className="inline-flex items-center gap-1.5 text-sm text-ink-soft">
        View
        <select className={`${FIELD} max-w-48 min-w-24 text-ink`} value={shown?.id ?? ""} onChange={(event) => open(event.target.value)}>
          <option value="">{query ? "unsaved" : "all"}</option>
          {mine.map((view) => (
            <option key={view.id} value={view.id}>
              {view.name}
            </option>
          ))}
        </select>
      </label>
      {name != null ? (
        <form onSubmit={(event) => void save(event)} className="flex gap-2">
          <input
            aria-label="Name of the view"
            placeholder="Name of the view"
            autoFocus
            maxLength={60}
            value={name}
            onChange={(event) => setName(event.target.value)}
            className={`${FIELD} w-40`}
          />
          <Button type="submit" disabled={busy || !name.trim()}>
            Save
          </Button>
          <Button kind="quiet" onClick={() => setName(null)}>
            Cancel
          </Button>
        </form>
      ) : shown ? (
        <Button
          kind="quiet"
          disabled={busy}
          onClick={() =>
            void act(() => api.DELETE("/api/v1/views/{view_id}", { params: { path: { view_id: shown.id } } }))
          }
        >
          Delete view
        </Button>
      ) : (
        <Button kind="quiet" disabled={!query} onClick={() => setName("")}>
          Save view
        </Button>
      )}
      {error ? <Trouble error={error} /> : null}
    </div>
  );
}

function queryOf(search: Record<string, string>): string {
  const kept = Object.entries(search).filter(([part, value]) => value && !ELSEWHERE.includes(part));
  return new URLSearchParams(kept.sort(([a], [b]) => (a < b ? -1 : 1))).toString();
}
