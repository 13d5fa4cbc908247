/** Task × configuration: each sign is a trial; hover for its result, click to open it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useRef } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { CsvButton } from "@/parts/CsvButton";
import type { CsvColumn } from "@/parts/csv";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { RowLink } from "@/parts/RowLink";
import { StateShape, statusOf } from "@/parts/State";

type Row = Schemas["GridRow"];

export function GridView({ job }: { job: number }) {
  const grid = useQuery({
    queryKey: ["job", job, "grid"],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}/grid", { params: { path: { job_id: job } } })),
    placeholderData: (old) => old,
  });
  const rows = grid.data?.tasks ?? [];
  return (
    <Panel
      title="Task × configuration"
      side={
        <span className="flex items-center gap-2 text-xs text-ink-faint">
          {(grid.data?.configurations.length ?? 0) > 1 ? (
            <Link to="/compare" search={{ jobs: String(job) } as never}>
              compare configurations
            </Link>
          ) : null}
          each sign is a trial{" "}
          <CsvButton name="task by configuration" columns={csvColumns(grid.data?.configurations ?? [])} rows={rows} />
        </span>
      }
      minHeight={160}
      flush
    >
      {grid.error ? (
        <Trouble error={grid.error} />
      ) : !grid.data ? (
        <Waiting rows={4} />
      ) : (
        <Signs configurations={grid.data.configurations} rows={rows} />
      )}
    </Panel>
  );
}

function csvColumns(configurations: string[]): CsvColumn<Row>[] {
  return [
    { name: "Task", value: (row) => row.name },
    { name: "Digest", value: (row) => row.digest },
    ...configurations.map((name, column) => ({
      name,
      value: (row: Row) => row.cells[column]?.map(statusOf).join(" "),
    })),
    ...configurations.map((name, column) => ({
      name: `${name}, added attempts`,
      value: (row: Row) => row.added?.[column]?.map(statusOf).join(" "),
    })),
  ];
}

function Signs({ configurations, rows }: { configurations: string[]; rows: Row[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 30,
    overscan: 10,
  });
  const tracks = `minmax(9rem, 16rem) repeat(${configurations.length}, minmax(9rem, 1fr))`;
  return (
    <div
      ref={scroller}
      className="max-h-[26rem] overflow-auto"
      tabIndex={0}
      role="region"
      aria-label="Task by configuration"
    >
      <div className="min-w-max">
        <div
          className="sticky top-0 z-10 grid border-b bg-raised text-xs text-ink-soft"
          style={{ gridTemplateColumns: tracks }}
        >
          <span className="px-3 py-1.5">task</span>
          {configurations.map((label) => (
            <span key={label} className="truncate px-2 py-1.5" title={label}>
              {label}
            </span>
          ))}
        </div>
        <div className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => (
            <div
              key={item.key}
              className="absolute inset-x-0 grid items-center border-b text-sm hover:bg-raised"
              style={{ gridTemplateColumns: tracks, height: 30, transform: `translateY(${item.start}px)` }}
            >
              <TaskRow row={rows[item.index] as Row} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

const TaskRow = memo(function TaskRow({ row }: { row: Row }) {
  return (
    <>
      <RowLink to={`/tasks/${row.digest}`} className="truncate px-3" title={row.name}>
        {row.name}
      </RowLink>
      {row.cells.map((cell, column) => (
        <span key={column} className="flex gap-1 overflow-hidden px-2">
          {cell.map((trial) => (
            <Sign key={trial.trial} task={row.name} trial={trial} />
          ))}
          {row.added?.[column]?.length ? (
            <span className="ml-1 flex gap-1 border-l border-line-strong pl-1.5" data-added>
              {row.added[column].map((trial) => (
                <Sign key={trial.trial} task={row.name} trial={trial} note=", added, not part of the score" />
              ))}
            </span>
          ) : null}
        </span>
      ))}
    </>
  );
});

function Sign({ task, trial, note = "" }: { task: string; trial: Schemas["GridCell"]; note?: string }) {
  const how = statusOf(trial);
  const description = `attempt ${trial.repeat}: ${how}${trial.reward != null ? `, reward ${trial.reward}` : ""}${trial.marks?.length ? `, ${trial.marks.join(", ")}` : ""}${note}`;
  return (
    <RowLink to={`/trials/${trial.trial}`} title={description} label={`${task}, ${description}`} className="flex p-0.5">
      <StateShape of={how} />
    </RowLink>
  );
}
