import type { ReactNode } from "react";

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
