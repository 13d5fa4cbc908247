import { useEffect, useRef, useState } from "react";

import { problemOf } from "@/api/problem";
import { Button } from "./Button";
import { type CsvColumn, saveCsv } from "./csv";

/** Fetches every row there is, and tells how many have come so far. */
export type ReadAll<Row> = (tell: (rows: number) => void, signal: AbortSignal) => Promise<Row[]>;

type Props<Row> = {
  name: string;
  columns: CsvColumn<Row>[];
  rows: Row[];
  all?: ReadAll<Row>;
  order?: (rows: Row[]) => Row[];
};

/** Any table as a file: every row that its filters choose, in the order that is shown, whether it was loaded before or not. */
export function CsvButton<Row>({ name, columns, rows, all, order }: Props<Row>) {
  const [come, setCome] = useState<number | null>(null);
  const [trouble, setTrouble] = useState("");
  const reading = useRef<AbortController | null>(null);
  useEffect(() => () => reading.current?.abort(), []);

  async function save() {
    setTrouble("");
    if (!all) return saveCsv(name, columns, rows);
    const stop = new AbortController();
    reading.current = stop;
    setCome(0);
    try {
      const found = await all(setCome, stop.signal);
      if (!stop.signal.aborted) saveCsv(name, columns, order ? order(found) : found);
    } catch (error) {
      if (!stop.signal.aborted) setTrouble(`Nothing was saved: ${problemOf(error).message}`);
    } finally {
      setCome(null);
    }
    return undefined;
  }

  return (
    <span className="-mr-2 inline-flex items-center gap-2">
      <span role="status" className={trouble ? "text-failed" : ""}>
        {trouble || (come == null ? "" : `reading ${come.toLocaleString("en")} rows …`)}
      </span>
      {come == null ? (
        <Button kind="quiet" onClick={() => void save()} disabled={!rows.length} aria-label={`${name} as CSV`}>
          CSV
        </Button>
      ) : (
        <Button kind="quiet" onClick={() => reading.current?.abort()}>
          Stop
        </Button>
      )}
    </span>
  );
}
