import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { FIELD } from "@/parts/field";
import { useFilters } from "@/parts/Filters";
import { percent, plural } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Figure, Figures, Panel } from "@/parts/Panel";
import { Pairs } from "./Pairs";

type Comparison = Schemas["JudgedComparison"];
type Difference = Schemas["TaskDifference"];

export function CompareJobs({ jobs }: { jobs: number[] }) {
  const [, setFilter] = useFilters();
  const [baseline, ...others] = jobs;
  const named = useQueries({
    queries: jobs.map((job) => ({
      queryKey: ["job", job],
      queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: job } } })),
    })),
  });
  const nameOf = (job: number) =>
    `job ${job}${named[jobs.indexOf(job)]?.data?.name ? `: ${named[jobs.indexOf(job)]?.data?.name}` : ""}`;
  const result = useQuery({
    queryKey: ["compare", jobs],
    queryFn: () => unwrap(api.GET("/api/v1/compare", { params: { query: { baseline, other: others } as never } })),
    enabled: others.length > 0,
    retry: false,
  });
  if (!baseline || !others.length)
    return (
      <>
        <h1>Compare</h1>
        <Empty
          action={
            <Link to="/" className="text-accent">
              Go to the jobs
            </Link>
          }
        >
          Choose two or more jobs in the list of jobs, then press Compare.
        </Empty>
      </>
    );
  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-wrap items-center gap-3">
        <h1>Compare</h1>
        <label className="text-sm text-ink-soft">
          baseline{" "}
          <select
            className={`${FIELD} max-w-64`}
            value={baseline}
            onChange={(event) =>
              setFilter(
                "jobs",
                [Number(event.target.value), ...jobs.filter((job) => job !== Number(event.target.value))].join(","),
              )
            }
          >
            {jobs.map((job) => (
              <option key={job} value={job}>
                {nameOf(job)}
              </option>
            ))}
          </select>
        </label>
        <span className="text-sm text-ink-soft">
          against{" "}
          {others.map((job) => (
            <Link key={job} className="mr-3" to="/jobs/$job" params={{ job: String(job) }}>
              {nameOf(job)}
            </Link>
          ))}
        </span>
      </header>
      {result.error ? <Trouble error={result.error} /> : null}
      {result.isPending ? <Waiting /> : null}
      {result.data?.items.map((item, index) => (
        <One key={index} item={item} jobs={jobs} />
      ))}
    </div>
  );
}

/** Sorted by regression: what got worse comes first. */
function One({ item, jobs }: { item: Comparison; jobs: number[] }) {
  const [open, setOpen] = useState<string>();
  const rows = [...item.tasks].sort((a, b) => gain(a) - gain(b));
  const columns: Column<Difference>[] = [
    { id: "task", name: "Task", width: "minmax(12rem, 2fr)", cell: (row) => row.task, value: (row) => row.task },
    {
      id: "a",
      name: item.label_a,
      width: "minmax(9rem, 1fr)",
      align: "right",
      cell: (row) => `${row.passed_a}/${row.trials_a} (${percent(row.a, 0)})`,
      value: (row) => row.a,
    },
    {
      id: "b",
      name: item.label_b,
      width: "minmax(9rem, 1fr)",
      align: "right",
      cell: (row) => `${row.passed_b}/${row.trials_b} (${percent(row.b, 0)})`,
      value: (row) => row.b,
    },
    {
      id: "change",
      name: "Change",
      width: "8rem",
      align: "right",
      cell: (row) => <Change of={gain(row)} />,
      value: gain,
    },
  ];
  return (
    <Panel title={`${item.label_b} against ${item.label_a}`} flush>
      <div className="p-3">
        <Figures end>
          <Figure name={item.label_a} value={percent(item.score_a)} />
          <Figure name={item.label_b} value={percent(item.score_b)} />
          <Figure name="difference" value={item.a_minus_b == null ? "–" : <Change of={-item.a_minus_b} large />} />
          <Figure
            name="95 % interval"
            value={item.interval ? `${points(-item.interval.high)} to ${points(-item.interval.low)}` : "none"}
            hint={item.interval ? item.interval.note : item.unavailable?.interval}
          />
          <Figure
            name={item.p_holm != null ? "p (Holm)" : "p"}
            value={(item.p_holm ?? item.significance?.p)?.toPrecision(3) ?? "–"}
            hint={item.significance?.test}
          />
          <Figure name="better on · worse on" value={`${item.ahead_b} · ${plural(item.ahead_a, "tasks")}`} />
          {item.mcnemar && item.mcnemar.test !== item.significance?.test ? (
            <Figure name="p (McNemar)" value={item.mcnemar.p.toPrecision(3)} hint="Over the tasks that differ" />
          ) : null}
          <Figure name="tasks in common" value={item.tasks.length} />
        </Figures>
      </div>
      <p className="px-3 pb-3 text-sm text-balance" data-verdict>
        {item.verdict}
      </p>
      {untold(item).map((why) => (
        <p key={why} className="px-3 pb-2 text-xs text-ink-soft">
          {why[0]?.toUpperCase() + why.slice(1)}.
        </p>
      ))}
      <div className="border-t">
        <DataTable
          name="tasks"
          rows={rows}
          columns={columns}
          rowKey={(row) => row.task}
          height="24rem"
          onOpen={(row) => setOpen(row.task === open ? undefined : row.task)}
          empty={<Empty>The two have no task in common.</Empty>}
        />
      </div>
      {open ? <Pairs task={open} jobs={jobs} labels={[item.label_a, item.label_b]} /> : null}
    </Panel>
  );
}

/** Why numbers are missing, where the verdict has not said so already. */
function untold(item: Comparison): string[] {
  return [...new Set(Object.values(item.unavailable))].filter((why) => !item.verdict.includes(why));
}

function gain(row: Difference): number {
  return row.b - row.a;
}

function points(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value * 100).toFixed(1)}`;
}

function Change({ of, large = false }: { of: number; large?: boolean }) {
  const look = of > 0 ? "text-passed" : of < 0 ? "text-failed" : "text-ink-soft";
  return (
    <span className={`${look} ${large ? "text-base" : ""}`}>
      {of > 0 ? "▲" : of < 0 ? "▼" : "="} {points(of)} points
    </span>
  );
}
