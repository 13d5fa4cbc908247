/** Every list of the page: sorted by a click, walked with j and k, scrolled without limit, saved as CSV. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useCallback, useMemo, useRef, useState } from "react";

import { CsvButton } from "./CsvButton";
import { plural } from "./format";

export type Column<Row> = {
  id: string;
  name: string;
  /** A CSS grid track, such as `8rem` or `minmax(10rem, 2fr)`. */
  width: string;
  cell: (row: Row) => ReactNode;
  /** What sorting and the CSV take; columns without it do neither. */
  value?: (row: Row) => string | number | null | undefined;
  align?: "right";
};

type Sort = { id: string; down: boolean } | null;

type Props<Row> = {
  /** What the rows are, as a plural: "jobs". */
  name: string;
  rows: Row[];
  columns: Column<Row>[];
  rowKey: (row: Row) => string | number;
  onOpen?: (row: Row) => void;
  /** Called near the end of the list, to fetch the next page. */
  onEnd?: () => void;
  /** Every row there is, where `rows` may be the first pages only: for the CSV. */
  all?: () => Promise<Row[]>;
  /** How many rows there are, where that is known and `rows` may be fewer. */
  total?: number;
  selected?: ReadonlySet<string | number>;
  onSelect?: (key: string | number, on: boolean) => void;
  height?: number | string;
  empty?: ReactNode;
};

const ROW_PX = 34;

export function DataTable<Row>(props: Props<Row>) {
  const { rows, columns, rowKey, name } = props;
  const [sort, setSort] = useState<Sort>(null);
  const [at, setAt] = useState(-1);
  const scroller = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  const list = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    onChange: (it) => {
      const last = it.getVirtualItems().at(-1);
      if (last && last.index >= sorted.length - 60) props.onEnd?.();
    },
  });
  const { onOpen } = props;
  const choose = useCallback((row: Row, index: number) => {
    setAt(index);
    onOpen?.(row);
  }, [onOpen]);
  const tracks = (props.onSelect ? "2rem " : "") + columns.map((column) => column.width).join(" ");

  function walk(event: KeyboardEvent) {
    if ((event.target as HTMLElement).closest("input, a, button") && event.key === "Enter") return;
    const step = event.key === "j" || event.key === "ArrowDown" ? 1 : event.key === "k" || event.key === "ArrowUp" ? -1 : 0;
    const row = sorted[at];
    if (step) {
      const next = Math.min(Math.max(at + step, 0), sorted.length - 1);
      setAt(next);
      list.scrollToIndex(next);
      event.preventDefault();
    } else if (event.key === "Enter" && row) props.onOpen?.(row);
    else if (event.key === "x" && row) props.onSelect?.(rowKey(row), !props.selected?.has(rowKey(row)));
  }

  return (
    <div className="min-w-0">
      <div className="flex min-h-9 items-center justify-between gap-2 border-b px-3 py-1 text-sm text-ink-soft">
        <span>{plural(props.total ?? sorted.length, name)}</span>
        <CsvButton name={name} columns={columns} rows={sorted} all={sort ? undefined : props.all} />
      </div>
      <div ref={scroller} role="table" aria-label={name} aria-rowcount={sorted.length + 1} tabIndex={0} onKeyDown={walk} data-rows
        className="overflow-auto focus-visible:outline-offset-[-2px]" style={{ maxHeight: props.height ?? "max(20rem, calc(100vh - 14rem))" }}>
        <div className="min-w-min">
          <div role="rowgroup" className="sticky top-0 z-10">
            <div role="row" aria-rowindex={1} className="grid items-center border-b bg-raised text-xs text-ink-soft" style={{ gridTemplateColumns: tracks }}>
              {props.onSelect ? <span role="columnheader" className="px-2"><span className="sr-only">Selected</span></span> : null}
              {columns.map((column) => (
                <Heading key={column.id} column={column} sort={sort} onSort={setSort} />
              ))}
            </div>
          </div>
          {sorted.length === 0 ? null : (
            <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
              {list.getVirtualItems().map((item) => {
                const row = sorted[item.index] as Row;
                const key = rowKey(row);
                return (
                  <Line key={key} row={row} id={key} index={item.index} start={item.start} columns={columns as Column<unknown>[]} tracks={tracks} here={item.index === at}
                    selected={props.onSelect ? (props.selected?.has(key) ?? false) : undefined} onSelect={props.onSelect} onChoose={choose as (row: unknown, index: number) => void} opens={!!props.onOpen} />
                );
              })}
            </div>
          )}
        </div>
      </div>
      {sorted.length === 0 ? props.empty : null}
    </div>
  );
}

type LineProps = {
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
  onChoose: (row: unknown, index: number) => void;
  opens: boolean;
};

/** A row is drawn once: scrolling only adds those that come into sight. */
const Line = memo(function Line({ row, id, index, start, columns, tracks, here, selected, onSelect, onChoose, opens }: LineProps) {
  return (
    <div role="row" aria-rowindex={index + 2} data-at={here || undefined}
      className={`absolute inset-x-0 grid items-center border-b text-sm contain-content last:border-b-0 ${here ? "bg-accent-soft" : "hover:bg-raised"} ${opens ? "cursor-pointer" : ""}`}
      style={{ gridTemplateColumns: tracks, height: ROW_PX, transform: `translateY(${start}px)` }}
      onClick={() => onChoose(row, index)}>
      {selected === undefined ? null : (
        <span role="cell" className="flex px-2" onClick={(event) => event.stopPropagation()}>
          <input type="checkbox" aria-label={`Select ${id}`} checked={selected} onChange={(event) => onSelect?.(id, event.target.checked)} />
        </span>
      )}
      {columns.map((column) => (
        <div role="cell" key={column.id} className={`truncate px-2 ${column.align === "right" ? "text-right" : ""}`}>{column.cell(row)}</div>
      ))}
    </div>
  );
});

function Heading<Row>({ column, sort, onSort }: { column: Column<Row>; sort: Sort; onSort: (sort: Sort) => void }) {
  const mine = sort?.id === column.id ? sort : null;
  const look = `truncate px-2 py-1.5 font-medium ${column.align === "right" ? "text-right" : "text-left"}`;
  if (!column.value) return <div role="columnheader" className={look}>{column.name}</div>;
  return (
    <div role="columnheader" aria-sort={mine ? (mine.down ? "descending" : "ascending") : "none"} className={look}>
      <button type="button" title={column.name} className="hover:text-ink" onClick={() => onSort(mine?.down ? null : { id: column.id, down: !!mine })}>
        {column.name}{mine ? (mine.down ? " ↓" : " ↑") : ""}
      </button>
    </div>
  );
}

function sortRows<Row>(rows: Row[], columns: Column<Row>[], sort: Sort): Row[] {
  const value = columns.find((column) => column.id === sort?.id)?.value;
  if (!sort || !value) return rows;
  const sign = sort.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x == null || y == null) return x == null ? (y == null ? 0 : 1) : -1;
    return x < y ? -sign : x > y ? sign : 0;
  });
}
