/** One task: what it asks for, its files, and every attempt at it so far. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { usePages } from "@/api/paging";
import { buttonLook } from "@/parts/Button";
import { DataTable } from "@/parts/DataTable";
import { useFilters } from "@/parts/Filters";
import { bytes, duration } from "@/parts/format";
import { Empty, ProblemList, Trouble, Waiting } from "@/parts/Notice";
import { Figure, Figures, Panel } from "@/parts/Panel";
import { Tabs } from "@/parts/Tabs";
import { TRIAL_COLUMNS } from "@/pages/job/TrialTable";
import { tasksLink } from "@/pages/launch/link";
import { useTitle } from "@/parts/title";
import { TaskFiles } from "./TaskFiles";

export default function Task() {
  const digest = String(useParams({ strict: false }).digest);
  const [filters, setFilter] = useFilters();
  const path = { params: { path: { digest } } };
  const task = useQuery({ queryKey: ["task", digest], queryFn: () => unwrap(api.GET("/api/v1/tasks/{digest}", path)) });
  useTitle(task.data?.name, "Tasks");
  if (task.error) return <Trouble error={task.error} />;
  if (!task.data) return <Waiting />;
  const { data } = task;
  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-wrap items-center justify-between gap-3">
        <h1>
          <Link to="/tasks" className="font-normal text-ink-soft no-underline hover:underline">
            tasks
          </Link>{" "}
          / {data.name}
        </h1>
        <div className="flex gap-2">
          <a className={buttonLook()} href={`/api/v1/tasks/${encodeURIComponent(digest)}/archive`}>
            Download
          </a>
          <Link to="/launch" search={{ tasks: tasksLink([digest]) } as never} className={buttonLook("main")}>
            Launch
          </Link>
        </div>
      </header>
      <Panel>
        <Figures>
          <Figure name="format" value={data.format} />
          <Figure name="category" value={data.category || "–"} />
          <Figure name="difficulty" value={data.difficulty || "–"} />
          <Figure name="agent limit" value={duration(data.agent_timeout_sec)} />
          <Figure name="verifier limit" value={duration(data.verifier_timeout_sec)} />
          <Figure
            name="resources"
            value={`${data.resources?.cpus ?? "default"} cpu · ${data.resources?.memory_mb ? `${data.resources.memory_mb.toLocaleString("en")} MB` : "default memory"}`}
          />
          <Figure name="network" value={data.network_mode ?? "default"} />
          <Figure name="size" value={bytes(data.size_bytes ?? 0)} />
        </Figures>
        <p className="mt-3 font-mono text-xs break-all text-ink-faint">{data.digest}</p>
        {data.warnings?.length ? <ProblemList problems={data.warnings} /> : null}
      </Panel>
      <Panel flush>
        <Tabs
          label="Of this task"
          at={filters.tab ?? "instruction"}
          onChange={(tab) => setFilter("tab", tab)}
          tabs={[
            {
              id: "instruction",
              name: "Instruction",
              content: <pre className="p-4 font-mono text-xs whitespace-pre-wrap">{data.instruction}</pre>,
            },
            { id: "files", name: "Files", content: <TaskFiles digest={digest} /> },
            { id: "history", name: "History", content: <History digest={digest} /> },
          ]}
        />
      </Panel>
    </div>
  );
}

function History({ digest }: { digest: string }) {
  const navigate = useNavigate();
  const trials = usePages(["task", digest, "history"], (page) =>
    unwrap(api.GET("/api/v1/tasks/{digest}/history", { params: { path: { digest }, query: page as never } })),
  );
  if (trials.error) return <Trouble error={trials.error} />;
  return trials.isPending ? (
    <Waiting />
  ) : (
    <DataTable
      name="trials"
      rows={trials.rows}
      columns={TRIAL_COLUMNS}
      rowKey={(trial) => trial.id}
      onEnd={trials.more}
      whole={trials.isWhole}
      all={trials.all}
      height="32rem"
      onOpen={(trial) => void navigate({ to: "/trials/$trial", params: { trial: String(trial.id) } })}
      empty={<Empty>This task has no trials yet.</Empty>}
    />
  );
}
