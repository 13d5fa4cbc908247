import { useState } from "react";

import { Button } from "./Button";
import { type CsvColumn, saveCsv } from "./csv";

type Props<Row> = { name: string; columns: CsvColumn<Row>[]; rows: Row[]; all?: () => Promise<Row[]> };

/** Any table as a file: what is shown, or all of it where more than that is there. */
export function CsvButton<Row>({ name, columns, rows, all }: Props<Row>) {
  const [busy, setBusy] = useState(false);
  async function save() {
    setBusy(true);
    try {
      saveCsv(name, columns, all ? await all() : rows);
    } finally {
      setBusy(false);
    }
  }
  return <Button kind="quiet" onClick={() => void save()} disabled={busy || !rows.length} aria-label={`${name} as CSV`}>{busy ? "Reading …" : "CSV"}</Button>;
}
