/** Tasks that are here, and the place to drop new ones. */

import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { usePages } from "@/api/paging";
import { Button } from "@/parts/Button";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { type Choice, Filters, useChosen } from "@/parts/Filters";
import { bytes, duration } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { RowLink } from "@/parts/RowLink";
import { useTitle } from "@/parts/title";
import { DropZone } from "./DropZone";
import { SamplesButton } from "./SamplesButton";
import { tasksLink } from "@/pages/launch/link";

type Task = Schemas["TaskItem"];

const CHOICES: readonly Choice[] = [
  { name: "q", label: "Search tasks" },
  { name: "category", label: "Category" },
  { name: "tag", label: "Tag" },
  { name: "difficulty", label: "Difficulty", options: ["easy", "medium", "hard"] },
  { name: "format", label: "Format", options: ["harbor", "terminal-bench-1"] },
];

const COLUMNS: Column<Task>[] = [
  {
    id: "name",
    name: "Task",
    width: "minmax(10rem, 2fr)",
    cell: (task) => (
      <RowLink to={`/tasks/${task.digest}`} className="font-medium">
        {task.name}
      </RowLink>
    ),
    value: (task) => task.name,
  },
  {
    id: "description",
    name: "Description",
    width: "minmax(12rem, 3fr)",
    cell: (task) => (
      <span className="text-ink-soft" title={task.description}>
        {task.description || "–"}
      </span>
    ),
    value: (task) => task.description,
  },
  { id: "format", name: "Format", width: "8.5rem", cell: (task) => task.format, value: (task) => task.format },
  {
    id: "category",
    name: "Category",
    width: "9rem",
    cell: (task) => task.category || "–",
    value: (task) => task.category,
  },
  {
    id: "difficulty",
    name: "Difficulty",
    width: "6rem",
    cell: (task) => task.difficulty || "–",
    value: (task) => task.difficulty,
  },
  {
    id: "timeout",
    name: "Agent limit",
    width: "6.5rem",
    align: "right",
    cell: (task) => duration(task.agent_timeout_sec),
    value: (task) => task.agent_timeout_sec,
  },
  {
    id: "size",
    name: "Size",
    width: "5.5rem",
    align: "right",
    cell: (task) => bytes(task.size_bytes),
    value: (task) => task.size_bytes,
  },
  {
    id: "warnings",
    name: "Warnings",
    width: "5.5rem",
    align: "right",
    cell: (task) => (task.warnings ? <span className="text-error">{task.warnings}</span> : "0"),
    value: (task) => task.warnings,
  },
  {
    id: "digest",
    name: "Digest",
    width: "8rem",
    cell: (task) => <code className="font-mono text-xs text-ink-faint">{task.digest.slice(7, 19)}</code>,
    value: (task) => task.digest,
  },
];

export default function Tasks() {
  useTitle("Tasks");
  const navigate = useNavigate();
  const [selected, setSelected] = useState<ReadonlySet<string | number>>(new Set());
  const wanted = useChosen(CHOICES);
  const tasks = usePages(["tasks", wanted], (page) =>
    unwrap(api.GET("/api/v1/tasks", { params: { query: { ...wanted, ...page } as never } })),
  );

  function select(key: string | number, on: boolean) {
    const next = new Set(selected);
    if (on) next.add(key);
    else next.delete(key);
    setSelected(next);
  }

  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-wrap items-center justify-between gap-3">
        <h1>Tasks</h1>
        <div className="flex gap-2">
          <SamplesButton />
          <Button
            kind="main"
            disabled={!selected.size}
            onClick={() => void navigate({ to: "/launch", search: { tasks: tasksLink([...selected] as string[]) } as never })}
          >
            Launch{selected.size ? ` ${selected.size}` : ""}
          </Button>
        </div>
      </header>
      <DropZone />
      <Filters choices={CHOICES} />
      <div className="rounded-lg border bg-panel">
        {tasks.error ? <Trouble error={tasks.error} retry={() => void tasks.refetch()} /> : null}
        {tasks.isPending ? (
          <Waiting />
        ) : (
          <DataTable
            name="tasks"
            rows={tasks.rows}
            columns={COLUMNS}
            rowKey={(task) => task.digest}
            onEnd={tasks.more}
            whole={tasks.isWhole}
            all={tasks.all}
            selected={selected}
            onSelect={select}
            onOpen={(task) => void navigate({ to: "/tasks/$digest", params: { digest: task.digest } })}
            empty={
              Object.keys(wanted).length ? (
                <Empty>No task matches these filters.</Empty>
              ) : (
                <Empty action={<SamplesButton main />}>
                  No task yet. Drop an archive above, or begin with the samples.
                </Empty>
              )
            }
          />
        )}
      </div>
    </div>
  );
}
