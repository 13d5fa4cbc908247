/** Task × pair: how much each B differs from its A. The largest losses come first; a cell opens its trials. */

import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";

import type { Schemas } from "@/api/client";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { FIELD } from "@/parts/field";
import { useFilters } from "@/parts/Filters";
import { percent } from "@/parts/format";
import { Empty } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { CellPairs } from "./CellPairs";
import { Change } from "./Verdict";
import { type Comparison, sideName } from "./wish";

type Row = Schemas["MatrixRow"];
type Cell = Schemas["MatrixCell"];

const WHY: Record<string, string> = {
  absent: "–",
  only_a: "only in A",
  only_b: "only in B",
  changed: "other content",
  no_valid_trial: "no valid trial",
};
const ORDERS = { "": "regressions first", "tasks.disagreement.down": "disagreement", "tasks.task.up": "task" } as const;

export function Matrix({ items, rows, jobs }: { items: Comparison[]; rows: Row[]; jobs: number[] }) {
  const [filters, setFilter] = useFilters();
  const pair = Number(filters.pair ?? 1) - 1;
  const item = items[pair];
  const navigate = useNavigate();
  const open = (task: string, place: number) => {
    const isOpen = task === filters.task && place === pair;
    const cell = isOpen ? { task: undefined, pair: undefined } : { task, pair: place ? String(place + 1) : undefined };
    void navigate({ to: ".", search: ((old: object) => ({ ...old, ...cell })) as never, replace: true });
  };
  const columns = useMemo(() => columnsOf(items, open), [items, filters.task, pair]);
  return (
    <Panel
      title="Task × configuration"
      flush
      side={
        <label className="inline-flex items-center gap-1.5 text-xs text-ink-soft">
          order
          <select
            className={FIELD}
            value={filters.sort && filters.sort in ORDERS ? filters.sort : filters.sort ? "other" : ""}
            onChange={(event) => setFilter("sort", event.target.value)}
          >
            {Object.entries(ORDERS).map(([sort, name]) => (
              <option key={sort} value={sort}>
                {name}
              </option>
            ))}
            {filters.sort && !(filters.sort in ORDERS) ? <option value="other">a column</option> : null}
          </select>
        </label>
      }
    >
      <DataTable
        name="tasks"
        rows={rows}
        columns={columns}
        rowKey={(row) => row.task}
        height="26rem"
        onOpen={(row) => open(row.task, worstOf(row))}
        empty={<Empty>There is no task on either side.</Empty>}
      />
      {filters.task && item ? (
        <CellPairs
          key={`${filters.task} ${pair}`}
          task={filters.task}
          item={item}
          back={{ jobs: jobs.join(","), baseline: filters.baseline, task: filters.task, pair: filters.pair }}
          baseline={sideName(item.job_a, item.configuration_a)}
          other={sideName(item.job_b, item.configuration_b)}
        />
      ) : null}
    </Panel>
  );
}

/** The pair that lost most on this task. */
function worstOf(row: Row): number {
  return Math.max(
    0,
    row.cells.findIndex((cell) => cell.b_minus_a === row.worst),
  );
}

function columnsOf(items: Comparison[], open: (task: string, pair: number) => void): Column<Row>[] {
  const labels = new Set(items.map((item) => item.label_a));
  const shared = labels.size === 1 ? [...labels][0] : undefined;
  const baseline: Column<Row>[] = shared
    ? [
        {
          id: "baseline",
          name: `A: ${shared}`,
          width: "minmax(8rem, 1fr)",
          align: "right",
          cell: (row) =>
            share(
              row.cells.find((cell) => cell.trials_a),
              "a",
            ),
          value: (row) => rate(row.cells.find((cell) => cell.trials_a)),
        },
      ]
    : [];
  return [
    {
      id: "task",
      name: "Task",
      width: "minmax(10rem, 2fr)",
      cell: (row) => <span title={row.task}>{row.task}</span>,
      value: (row) => row.task,
    },
    ...baseline,
    ...items.map((item, place) => ({
      id: `pair-${place + 1}`,
      name: shared ? item.label_b : `${item.label_b} against ${item.label_a}`,
      width: "minmax(11rem, 1.2fr)",
      align: "right" as const,
      cell: (row: Row) => (
        <CellButton row={row} cell={row.cells[place]} item={item} onOpen={() => open(row.task, place)} />
      ),
      value: (row: Row) => row.cells[place]?.b_minus_a,
    })),
    {
      id: "disagreement",
      name: "Disagreement",
      width: "7.5rem",
      align: "right",
      cell: (row) => percent(row.disagreement, 0),
      value: (row) => row.disagreement,
    },
  ];
}

function CellButton(props: { row: Row; cell: Cell | undefined; item: Comparison; onOpen: () => void }) {
  const { row, cell, item, onOpen } = props;
  if (!cell || cell.not_compared === "absent") return "–";
  return (
    <button
      type="button"
      className="w-full truncate rounded px-1 text-right hover:bg-accent-soft"
      onClick={(event) => {
        event.stopPropagation();
        onOpen();
      }}
    >
      <span className="sr-only">
        Trials of {row.task}: {item.label_b} against {item.label_a}:{" "}
      </span>
      {cell.b_minus_a == null ? (
        <span className="text-ink-soft">{WHY[cell.not_compared ?? "absent"]}</span>
      ) : (
        <Change of={cell.b_minus_a} unit={false} />
      )}{" "}
      <span className="text-ink-soft">
        {cell.passed_a}/{cell.trials_a} → {cell.passed_b}/{cell.trials_b}
      </span>
    </button>
  );
}

function share(cell: Cell | undefined, side: "a"): string {
  return cell ? `${cell[`passed_${side}`]}/${cell[`trials_${side}`]} (${percent(rate(cell), 0)})` : "–";
}

function rate(cell: Cell | undefined): number | null {
  return cell?.trials_a ? (cell.passed_a ?? 0) / cell.trials_a : null;
}
