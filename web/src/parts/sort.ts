/** Rows by one column: what has no value comes last, whichever way. */

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
