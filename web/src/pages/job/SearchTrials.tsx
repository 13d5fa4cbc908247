/** One text, looked for in everything that the trials of a job left: steps, tests, messages and the verifier's output. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { FIELD } from "@/parts/field";
import { useFilters } from "@/parts/Filters";
import { bytes, configuration, plural } from "@/parts/format";
import { Empty, Trouble } from "@/parts/Notice";
import { RowLink } from "@/parts/RowLink";
import { StateShape, type TrialStatus } from "@/parts/State";

type Hit = Schemas["Hit"];
const SHORTEST = 2;

export function SearchTrials({ job }: { job: number }) {
  const [filters, setFilter] = useFilters();
  const wanted = filters.find ?? "";
  const [typed, setTyped] = useState(wanted);
  const search = useInfiniteQuery({
    queryKey: ["search", job, wanted],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/jobs/{job_id}/search", {
          params: { path: { job_id: job }, query: { q: wanted, after: pageParam } },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: wanted.length >= SHORTEST,
    staleTime: Infinity,
  });
  const pages = search.data?.pages ?? [];
  const hits = pages.flatMap((page) => page.hits);
  function submit(event: FormEvent) {
    event.preventDefault();
    setFilter("find", typed.trim() || undefined);
  }
  return (
    <div className="min-h-64">
      <form role="search" onSubmit={submit} className="flex flex-wrap items-center gap-2 border-b px-3 py-2">
        <input
          type="search"
          aria-label="Search all trials"
          placeholder="Search all trials"
          minLength={SHORTEST}
          maxLength={200}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          className={`${FIELD} w-64`}
        />
        <Button type="submit" disabled={typed.trim().length < SHORTEST}>
          Search
        </Button>
        <span role="status" className="text-sm text-ink-soft">
          {search.isFetching ? "Searching …" : pages.length ? account(pages, search.hasNextPage) : ""}
        </span>
        {search.hasNextPage && !search.isFetching ? (
          <Button onClick={() => void search.fetchNextPage()}>Search on</Button>
        ) : null}
      </form>
      {search.error ? <Trouble error={search.error} /> : null}
      {!wanted ? (
        <Empty>Finds a text in agents’ steps, tests, messages and verifiers’ output of every trial.</Empty>
      ) : null}
      {pages.length && !hits.length && !search.isFetching ? <Empty>Nothing matches “{wanted}”.</Empty> : null}
      <ul aria-label="Found" className="max-h-[34rem] overflow-auto" tabIndex={hits.length ? 0 : undefined}>
        {hits.map((hit, index) => (
          <li key={index} className="border-b px-3 py-1.5 text-sm">
            <RowLink to={addressOf(hit, wanted)} className="font-medium">
              <StateShape of={(hit.outcome ?? "queued") as TrialStatus} /> trial {hit.trial_id}, {placeOf(hit)}
            </RowLink>{" "}
            <span className="text-xs text-ink-soft">
              {hit.task.name} · {configuration(hit)}
            </span>
            <p className="mt-0.5 font-mono text-xs break-words text-ink-soft">
              {hit.before}
              <mark className="bg-error-soft text-ink">{hit.match}</mark>
              {hit.after}
            </p>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The trial, opened where the text is. */
function addressOf(hit: Hit, wanted: string): string {
  const search = new URLSearchParams({ find: wanted });
  if (hit.place === "step") search.set("step", String(hit.number));
  if (hit.place === "test") search.set("tab", "tests");
  if (hit.place === "file") {
    search.set("tab", "logs");
    search.set("log", hit.name);
    search.set("find", hit.match);
  }
  return `/trials/${hit.trial_id}?${search.toString()}`;
}

function placeOf(hit: Hit): string {
  if (hit.place === "step") return `step ${hit.number}`;
  if (hit.place === "test") return `test ${hit.name}`;
  return hit.place === "file" ? `${hit.name}, line ${hit.number}` : "message";
}

function account(pages: Schemas["Found"][], more: boolean): string {
  const sum = (of: (page: Schemas["Found"]) => number) => pages.reduce((all, page) => all + of(page), 0);
  const found = sum((page) => page.hits.length);
  const cut = sum((page) => page.cut);
  return [
    `${plural(found, "places")} in ${plural(sum((page) => page.trials), "trials")}`,
    `${bytes(sum((page) => page.bytes))} read`,
    cut ? `only the beginning of ${plural(cut, "files")}` : "",
    more ? "there is more to search" : "all searched",
  ]
    .filter(Boolean)
    .join(", ");
}
