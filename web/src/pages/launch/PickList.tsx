import { useMemo, useRef, useState } from "react";

import { Button } from "@/parts/Button";
import { count } from "@/parts/format";
import { FIELD } from "@/parts/field";

export type Pick = { id: string; name: string; note?: string };

type Props = {
  /** What the options are, as a plural: "tasks". */
  label: string;
  options: Pick[];
  chosen: string[];
  onChange: (chosen: string[]) => void;
  /** Whether something that is not listed may be typed in. */
  allowOther?: boolean;
  height?: string;
};

/** More check boxes make the page slow. The rest is found by searching; "select all" includes it. */
const MOST_SHOWN = 300;
const MOST_CHIPS = 12;

/** A searchable list of check boxes in an order that never changes, with everything that is chosen below it. */
export function PickList({ label, options, chosen, onChange, allowOther = false, height = "16rem" }: Props) {
  const [text, setText] = useState("");
  const last = useRef<string | null>(null);
  const chosenIds = useMemo(() => new Set(chosen), [chosen]);
  const all = useMemo(() => withOthers(options, chosen), [options, chosen]);
  const found = useMemo(() => matching(all, text), [all, text]);
  const other = allowOther && text.trim() && !all.some((option) => option.id === text.trim()) ? text.trim() : "";

  function toggle(id: string, range: boolean) {
    const ids = range ? between(found, last.current, id) : [id];
    last.current = id;
    onChange(chosenIds.has(id) ? without(chosen, ids) : [...without(chosen, ids), ...ids]);
  }

  const foundIds = found.map((option) => option.id);
  return (
    <div className="min-w-0">
      <input
        type="search"
        aria-label={`Search ${label}`}
        placeholder={`Search ${label}`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        className={`${FIELD} mb-2 w-full`}
      />
      <div className="mb-2 flex flex-wrap gap-2">
        <Button
          disabled={!found.length || foundIds.every((id) => chosenIds.has(id))}
          onClick={() => onChange([...without(chosen, foundIds), ...foundIds])}
        >
          {text.trim() ? `Select ${count(found.length)} that match` : `Select all ${count(found.length)}`}
        </Button>
        <Button kind="quiet" disabled={!chosen.length} onClick={() => onChange([])}>
          Clear
        </Button>
      </div>
      <div
        className="overflow-auto rounded-md border"
        style={{ height }}
        tabIndex={0}
        role="group"
        aria-label={label}
        title="Hold Shift to choose a range"
      >
        {other ? (
          <button
            type="button"
            className="block w-full px-2 py-1 text-left text-sm text-accent hover:bg-raised"
            onClick={() => {
              onChange([...chosen, other]);
              setText("");
            }}
          >
            Use “{other}”
          </button>
        ) : null}
        {found.slice(0, MOST_SHOWN).map((option) => (
          <Option key={option.id} option={option} on={chosenIds.has(option.id)} onToggle={toggle} />
        ))}
        {found.length > MOST_SHOWN ? (
          <p className="px-2 py-1 text-sm text-ink-soft">
            {count(found.length - MOST_SHOWN)} more {label}: search to see them.
          </p>
        ) : null}
        {!found.length && !other ? <p className="px-2 py-3 text-sm text-ink-soft">No match.</p> : null}
      </div>
      <Chips label={label} all={all} chosen={chosen} onRemove={(id) => onChange(without(chosen, [id]))} />
    </div>
  );
}

type OptionProps = { option: Pick; on: boolean; onToggle: (id: string, range: boolean) => void };

function Option({ option, on, onToggle }: OptionProps) {
  return (
    <label className="flex cursor-pointer items-start gap-2 px-2 py-1 text-sm select-none hover:bg-raised">
      <input
        type="checkbox"
        className="mt-1"
        checked={on}
        onChange={(event) => onToggle(option.id, (event.nativeEvent as MouseEvent).shiftKey)}
      />
      <span className="min-w-0">
        <span className="block truncate">{option.name}</span>
        {option.note ? <span className="block truncate text-xs text-ink-faint">{option.note}</span> : null}
      </span>
    </label>
  );
}

type ChipsProps = { label: string; all: Pick[]; chosen: string[]; onRemove: (id: string) => void };

/** What is chosen, each with a button that removes it. Its place is reserved, so that nothing below moves. */
function Chips({ label, all, chosen, onRemove }: ChipsProps) {
  const [whole, setWhole] = useState(false);
  const names = useMemo(() => new Map(all.map((option) => [option.id, option.name])), [all]);
  const shown = whole ? chosen : chosen.slice(0, MOST_CHIPS);
  const rest = chosen.length - shown.length;
  return (
    <ul aria-label={`Chosen ${label}`} className="mt-2 flex max-h-24 min-h-6 flex-wrap gap-1 overflow-auto" tabIndex={0}>
      {shown.map((id) => (
        <li key={id} className="max-w-full">
          <button
            type="button"
            className="inline-flex max-w-full items-center gap-1 rounded-full bg-accent-soft px-2 py-0.5 text-xs text-accent"
            onClick={() => onRemove(id)}
          >
            <span className="sr-only">Remove </span>
            <span className="truncate">{names.get(id) ?? id}</span> <span aria-hidden>×</span>
          </button>
        </li>
      ))}
      {rest > 0 || whole ? (
        <li>
          <button type="button" className="px-1 text-xs text-accent hover:underline" onClick={() => setWhole(!whole)}>
            {whole ? "Show fewer" : `and ${count(rest)} more`}
          </button>
        </li>
      ) : null}
    </ul>
  );
}

/** The options, after those that were typed in. */
function withOthers(options: Pick[], chosen: string[]): Pick[] {
  const known = new Set(options.map((option) => option.id));
  return [...chosen.filter((id) => !known.has(id)).map((id) => ({ id, name: id })), ...options];
}

function matching(options: Pick[], text: string): Pick[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return options.filter((option) => {
    const where = `${option.id} ${option.name} ${option.note ?? ""}`.toLowerCase();
    return words.every((word) => where.includes(word));
  });
}

/** The ids from one to the other, in the order of the list; only the second if the first is not there. */
function between(options: Pick[], from: string | null, to: string): string[] {
  const ids = options.map((option) => option.id);
  const [a, b] = [from === null ? -1 : ids.indexOf(from), ids.indexOf(to)];
  return a < 0 || b < 0 ? [to] : ids.slice(Math.min(a, b), Math.max(a, b) + 1);
}

function without(ids: string[], gone: string[]): string[] {
  const set = new Set(gone);
  return ids.filter((id) => !set.has(id));
}
