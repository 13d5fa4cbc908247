/** Filters that live in the URL: a list can be pasted into a message as it is seen. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { FIELD } from "./field";

export type Choice = { name: string; label: string; options?: readonly string[] };

/** The search parameters of the current page, as plain text. */
export function useFilters(): [Record<string, string>, (name: string, value: string | undefined) => void] {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  return [
    search,
    (name, value) =>
      void navigate({
        to: ".",
        search: (old: Record<string, string | undefined>) => ({ ...old, [name]: value || undefined }),
        hash: true,
        replace: true,
      }),
  ];
}

/** The filters that are set, of those that a list has: what it asks the service for. */
export function useChosen(choices: readonly Choice[]): Record<string, string> {
  const [search] = useFilters();
  return Object.fromEntries(choices.flatMap(({ name }) => (search[name] ? [[name, search[name]]] : [])));
}

export function Filters({ choices }: { choices: readonly Choice[] }) {
  const [search, set] = useFilters();
  return (
    <div className="flex flex-wrap items-center gap-2" role="search">
      {choices.map((choice, index) =>
        choice.options ? (
          <label
            key={choice.name}
            className="inline-flex items-center gap-1.5 text-sm text-ink-soft max-sm:w-[calc(50%-0.25rem)]"
          >
            {choice.label}
            <select
              className={`${FIELD} min-w-0 text-ink max-sm:grow`}
              value={search[choice.name] ?? ""}
              onChange={(event) => set(choice.name, event.target.value)}
            >
              <option value="">any</option>
              {choice.options.map((option) => (
                <option key={option} value={option}>
                  {option}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <TextFilter
            key={choice.name}
            choice={choice}
            value={search[choice.name] ?? ""}
            onChange={(value) => set(choice.name, value)}
            first={index === 0}
          />
        ),
      )}
      {Object.entries(search)
        .filter(([name, value]) => value && choices.some((choice) => choice.name === name))
        .map(([name, value]) => (
          <button
            key={name}
            type="button"
            className="inline-flex items-center gap-1 rounded-full bg-accent-soft px-2 py-0.5 text-xs text-accent"
            onClick={() => set(name, undefined)}
          >
            <span className="sr-only">Remove filter </span>
            {name}: {String(value)} <span aria-hidden>×</span>
          </button>
        ))}
    </div>
  );
}

function TextFilter({
  choice,
  value,
  onChange,
  first,
}: {
  choice: Choice;
  value: string;
  onChange: (value: string) => void;
  first: boolean;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const later = setTimeout(() => onChange(text), 250);
    return () => clearTimeout(later);
  });
  return (
    <input
      type="search"
      aria-label={choice.label}
      placeholder={choice.label}
      value={text}
      onChange={(event) => setText(event.target.value)}
      data-search={first || undefined}
      className={`${FIELD} w-44 max-sm:w-[calc(50%-0.25rem)]`}
    />
  );
}
