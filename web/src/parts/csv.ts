/** Any list as a file that a spreadsheet opens. */

export type CsvColumn<Row> = { name: string; value?: (row: Row) => string | number | null | undefined };

export function csvOf<Row>(columns: CsvColumn<Row>[], rows: Row[]): string {
  const shown = columns.filter((column) => column.value);
  const lines = [
    shown.map((column) => cell(column.name)),
    ...rows.map((row) => shown.map((column) => cell(column.value?.(row)))),
  ];
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

/** The same as in `engine/reports/grid.py`. */
const FORMULA = /^(?:[\t\r\n]|[\s\0\ufeff\u200b]*[=+\-@|%＝＋－＠])/;

/** Spreadsheets run cells that begin like a formula; a quote in front keeps them text. */
function cell(value: string | number | null | undefined): string {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveCsv<Row>(name: string, columns: CsvColumn<Row>[], rows: Row[]) {
  save(`${name}.csv`, new Blob([csvOf(columns, rows)], { type: "text/csv" }));
}

export function save(name: string, content: Blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
