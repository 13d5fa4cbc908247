/** Every list of the page: sorted by a click, walked with j and k, scrolled without limit, saved as CSV. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { useAnchor } from "./anchor";
import type { Column } from "./column";
import type { CsvColumn } from "./csv";
import { CsvButton, type ReadAll } from "./CsvButton";
import { plural } from "./format";
import { type Sort, sortRows, useSort } from "./sort";
import { Heading, ROW_PX, TableRow } from "./TableRow";

type Props<Row> = {
  /** A heading for a table that stands on its own. */
  title?: string;
  /** What the rows are, as a plural: "jobs". */
  name: string;
  rows: Row[];
  columns: Column<Row>[];
  rowKey: (row: Row) => string | number;
  onOpen?: (row: Row) => void;
  /** Fetches the next page; another function as soon as it may be called again. */
  onEnd?: () => void;
  /** Every row there is, where `rows` may be the first pages only: for the CSV. */
  all?: ReadAll<Row>;
  /** Columns of the file, where they are others than those on the screen. */
  csv?: CsvColumn<Row>[];
  /** Whether `rows` are all there are; what is not loaded yet is fetched when somebody sorts. */
  whole?: boolean;
  /** How many rows there are, where that is known and `rows` may be fewer. */
  total?: number;
  selected?: ReadonlySet<string | number>;
  onSelect?: (key: string | number, on: boolean) => void;
  height?: number | string;
  empty?: ReactNode;
};

/** The next page is fetched when so few rows are left below. */
const NEAR_END = 60;
/** Beyond this, sorting in a browser is no longer pleasant. */
const MOST_SORTED = 20_000;

export function DataTable<Row>(props: Props<Row>) {
  const { rows, columns, rowKey, name } = props;
  const [sort, setSort] = useSort(name);
  const [at, setAt] = useState<string | number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  const keys = useMemo(() => sorted.map(rowKey), [sorted]);
  const remember = useAnchor(scroller, keys, ROW_PX);
  const list = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    onChange: (it) => remember(it.scrollOffset ?? 0),
  });
  const { onOpen, onEnd, whole = true } = props;
  // Sorting a part would show the wrong row on top.
  const loading = !!sort && !whole && rows.length < MOST_SORTED;
  const isNearEnd = (list.getVirtualItems().at(-1)?.index ?? 0) >= rows.length - NEAR_END;
  useEffect(() => {
    if (loading || (isNearEnd && !whole)) onEnd?.();
  }, [loading, isNearEnd, whole, onEnd]);
  const choose = useCallback(
    (row: Row, key: string | number) => {
      setAt(key);
      onOpen?.(row);
    },
    [onOpen],
  );
  const resort = (next: Sort) => {
    scroller.current?.scrollTo({ top: 0 });
    remember(0);
    setSort(next);
  };
  const tracks = (props.onSelect ? "2.25rem " : "") + columns.map((column) => column.width).join(" ");

  function walk(event: KeyboardEvent) {
    if ((event.target as HTMLElement).closest("input, a, button") && event.key === "Enter") return;
    const step =
      event.key === "j" || event.key === "ArrowDown" ? 1 : event.key === "k" || event.key === "ArrowUp" ? -1 : 0;
    const index = at == null ? -1 : keys.indexOf(at);
    const row = sorted[index];
    if (step) {
      const next = Math.min(Math.max(index + step, 0), sorted.length - 1);
      setAt(keys[next] ?? null);
      list.scrollToIndex(next);
      event.preventDefault();
    } else if (event.key === "Enter" && row) props.onOpen?.(row);
    else if (event.key === "x" && row) props.onSelect?.(rowKey(row), !props.selected?.has(rowKey(row)));
  }

  return (
    <div className="min-w-0">
      <div className="flex min-h-9 items-center justify-between gap-2 border-b px-3 py-1 text-sm text-ink-soft">
        {props.title ? <h2>{props.title}</h2> : null}
        <span role="status" className={props.title ? "grow text-xs text-ink-faint" : ""}>
          {countOf(name, rows.length, whole, props.total)}
          {loading
            ? ", loading the rest to sort …"
            : sort && !whole
              ? `, sorted among the first ${rows.length.toLocaleString("en")}`
              : ""}
        </span>
        <CsvButton
          name={name}
          columns={props.csv ?? columns}
          rows={sorted}
          all={whole ? undefined : props.all}
          order={(found) => sortRows(found, columns, sort)}
        />
      </div>
      <div
        ref={scroller}
        role="table"
        aria-label={name}
        aria-rowcount={sorted.length + 1}
        tabIndex={0}
        onKeyDown={walk}
        data-rows
        className="overflow-auto focus-visible:outline-offset-[-2px]"
        style={{ maxHeight: props.height ?? "max(20rem, calc(100vh - 14rem))" }}
      >
        <div className="min-w-min">
          <div role="rowgroup" className="sticky top-0 z-10">
            <div
              role="row"
              aria-rowindex={1}
              className="grid items-center border-b bg-raised text-xs text-ink-soft"
              style={{ gridTemplateColumns: tracks }}
            >
              {props.onSelect ? (
                <span role="columnheader" className="pl-3">
                  <span className="sr-only">Selected</span>
                </span>
              ) : null}
              {columns.map((column) => (
                <Heading key={column.id} column={column} sort={sort} onSort={resort} />
              ))}
            </div>
          </div>
          {sorted.length === 0 ? null : (
            <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
              {list.getVirtualItems().map((item) => {
                const row = sorted[item.index] as Row;
                const key = keys[item.index] as string | number;
                return (
                  <TableRow
                    key={key}
                    row={row}
                    id={key}
                    index={item.index}
                    start={item.start}
                    columns={columns as Column<unknown>[]}
                    tracks={tracks}
                    here={key === at}
                    selected={props.onSelect ? (props.selected?.has(key) ?? false) : undefined}
                    onSelect={props.onSelect}
                    onChoose={choose as (row: unknown, key: string | number) => void}
                    opens={!!props.onOpen}
                  />
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

function countOf(name: string, loaded: number, whole: boolean, total: number | undefined): string {
  return whole || total != null ? plural(total ?? loaded, name) : `more than ${plural(loaded, name)}`;
}
