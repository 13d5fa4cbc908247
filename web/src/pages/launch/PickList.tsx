import { useMemo, useState } from "react";
import { FIELD } from "@/parts/field";

export type Pick = { id: string; name: string; note?: string };

/** A searchable list of check boxes; what is chosen stays on top. */
export function PickList({
  label,
  options,
  chosen,
  onChange,
  allowOther = false,
  height = "16rem",
}: {
  label: string;
  options: Pick[];
  chosen: string[];
  onChange: (chosen: string[]) => void;
  allowOther?: boolean;
  height?: string;
}) {
  const [text, setText] = useState("");
  const shown = useMemo(() => {
    const known = new Set(options.map((option) => option.id));
    const others: Pick[] = chosen.filter((id) => !known.has(id)).map((id) => ({ id, name: id }));
    const found = [...others, ...options].filter((option) =>
      `${option.id} ${option.name}`.toLowerCase().includes(text.toLowerCase()),
    );
    return found.sort((a, b) => Number(chosen.includes(b.id)) - Number(chosen.includes(a.id))).slice(0, 300);
  }, [options, chosen, text]);
  const toggle = (id: string) =>
    onChange(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id]);
  const other = allowOther && text.trim() && !options.some((option) => option.id === text.trim()) ? text.trim() : "";
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
      <div
        className="overflow-auto rounded-md border"
        style={{ maxHeight: height }}
        tabIndex={0}
        role="group"
        aria-label={label}
      >
        {other ? (
          <button
            type="button"
            className="block w-full px-2 py-1 text-left text-sm text-accent hover:bg-raised"
            onClick={() => {
              toggle(other);
              setText("");
            }}
          >
            Use “{other}”
          </button>
        ) : null}
        {shown.map((option) => (
          <label key={option.id} className="flex cursor-pointer items-start gap-2 px-2 py-1 text-sm hover:bg-raised">
            <input
              type="checkbox"
              className="mt-1"
              checked={chosen.includes(option.id)}
              onChange={() => toggle(option.id)}
            />
            <span className="min-w-0">
              <span className="block truncate">{option.name}</span>
              {option.note ? <span className="block truncate text-xs text-ink-faint">{option.note}</span> : null}
            </span>
          </label>
        ))}
        {!shown.length && !other ? <p className="px-2 py-3 text-sm text-ink-soft">No match.</p> : null}
      </div>
    </div>
  );
}
