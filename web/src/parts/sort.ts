/** Rows by one column: what has no value comes last, whichever way. */

import { useMemo } from "react";

import { useFilters } from "./Filters";

export type Sort = { id: string; down: boolean } | null;

type Sortable<Row> = { id: string; value?: (row: Row) => string | number | null | undefined };

export function sortRows<Row>(rows: Row[], columns: readonly Sortable<Row>[], sort: Sort): Row[] {
  const value = columns.find((column) => column.id === sort?.id)?.value;
  if (!sort || !value) return rows;
  const sign = sort.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x == null || y == null) return x == null ? (y == null ? 0 : 1) : -1;
    return x < y ? -sign : x > y ? sign : 0;
  });
}

/** The order of a table, kept in the URL as `sort=jobs.score.down`: a pasted link shows the same row on top. One table of
 * a page is sorted by its URL at a time. */
export function useSort(table: string): [Sort, (next: Sort) => void] {
  const [search, set] = useFilters();
  const written = search.sort ?? "";
  const sort = useMemo(() => {
    const [name, id, way] = written.split(".");
    return name === nameOf(table) && id ? { id, down: way === "down" } : null;
  }, [written, table]);
  return [sort, (next) => set("sort", next ? `${nameOf(table)}.${next.id}.${next.down ? "down" : "up"}` : undefined)];
}

const nameOf = (table: string) => table.replaceAll(/\W+/g, "-");
