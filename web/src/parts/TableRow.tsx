/** What a table is made of: its headings, which sort, and its rows, which are drawn once. */

import { memo } from "react";

import type { Column } from "./column";
import type { Sort } from "./sort";

export const ROW_PX = 34;

type RowProps = {
  row: unknown;
  id: string | number;
  index: number;
  start: number;
  columns: Column<unknown>[];
  tracks: string;
  here: boolean;
  /** Nothing where rows cannot be selected. */
  selected: boolean | undefined;
  onSelect?: (key: string | number, on: boolean) => void;
  onChoose: (row: unknown, key: string | number) => void;
  opens: boolean;
};

/** A row is drawn once: scrolling only adds those that come into sight. */
export const TableRow = memo(function TableRow({
  row,
  id,
  index,
  start,
  columns,
  tracks,
  here,
  selected,
  onSelect,
  onChoose,
  opens,
}: RowProps) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-at={here || undefined}
      className={`absolute inset-x-0 grid items-center border-b text-sm contain-content last:border-b-0 ${here ? "bg-accent-soft" : "hover:bg-raised"} ${opens ? "cursor-pointer" : ""}`}
      style={{ gridTemplateColumns: tracks, height: ROW_PX, transform: `translateY(${start}px)` }}
      onClick={() => onChoose(row, id)}
    >
      {selected === undefined ? null : (
        <span role="cell" className="flex pl-3" onClick={(event) => event.stopPropagation()}>
          <input
            type="checkbox"
            aria-label={`Select ${id}`}
            checked={selected}
            onChange={(event) => onSelect?.(id, event.target.checked)}
          />
        </span>
      )}
      {columns.map((column) => (
        <div
          role="cell"
          key={column.id}
          className={`truncate px-2 first:pl-3 last:pr-3 ${column.align === "right" ? "text-right" : ""}`}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
});

export function Heading<Row>({
  column,
  sort,
  onSort,
}: {
  column: Column<Row>;
  sort: Sort;
  onSort: (sort: Sort) => void;
}) {
  const mine = sort?.id === column.id ? sort : null;
  const look = `truncate px-2 py-1.5 font-medium first:pl-3 last:pr-3 ${column.align === "right" ? "text-right" : "text-left"}`;
  if (!column.name)
    return (
      <div role="columnheader">
        <span className="sr-only">Actions</span>
      </div>
    );
  if (!column.value)
    return (
      <div role="columnheader" className={look}>
        {column.name}
      </div>
    );
  return (
    <div role="columnheader" aria-sort={mine ? (mine.down ? "descending" : "ascending") : "none"} className={look}>
      <button
        type="button"
        title={column.name}
        className="max-w-full truncate align-bottom hover:text-ink"
        onClick={() => onSort(mine?.down ? null : { id: column.id, down: !!mine })}
      >
        {column.name}
        {mine ? (mine.down ? " ↓" : " ↑") : ""}
      </button>
    </div>
  );
}
