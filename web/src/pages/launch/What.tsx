import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, type Schemas, unwrap } from "@/api/client";
import { plural } from "@/parts/format";
import { Panel } from "@/parts/Panel";
import { SamplesButton } from "@/pages/tasks/SamplesButton";
import { PickList } from "./PickList";
import { useTasks } from "./tasks";
import type { Wish } from "./wish";

type Props = { wish: Wish; change: (part: Partial<Wish>) => void };

/** A dataset, or tasks one by one. */
export function What({ wish, change }: Props) {
  const tasks = useTasks();
  const datasets = useQuery({ queryKey: ["datasets"], queryFn: () => unwrap(api.GET("/api/v1/datasets")) });
  const options = (tasks.data ?? []).map((task) => ({
    id: task.digest,
    name: task.name,
    note: task.description || task.category,
  }));
  const known = datasets.data?.items ?? [];
  return (
    <Panel
      title="Tasks"
      side={
        <span className="text-xs text-ink-faint">{wish.dataset ? "a dataset" : `${wish.tasks.length} chosen`}</span>
      }
    >
      {known.length ? <Datasets known={known} wish={wish} change={change} /> : null}
      {wish.dataset ? null : tasks.data && !options.length ? (
        <div className="flex flex-col items-start gap-2 text-sm text-ink-soft">
          <p>
            There is no task yet. <Link to="/tasks">Upload one</Link> or begin with the samples.
          </p>
          <SamplesButton main />
        </div>
      ) : (
        <PickList
          label="tasks"
          options={options}
          chosen={wish.tasks}
          onChange={(chosen) => change({ tasks: chosen })}
          height="19rem"
        />
      )}
    </Panel>
  );
}

function Datasets({ known, wish, change }: Props & { known: Schemas["DatasetItem"][] }) {
  return (
    <fieldset className="mb-3">
      <legend className="mb-1 text-sm text-ink-soft">Dataset</legend>
      <div className="max-h-40 overflow-auto rounded-md border">
        {known.map((dataset) => {
          const id = `${dataset.name}@${dataset.version}`;
          return (
            <Choice key={id} on={wish.dataset === id} choose={() => change({ dataset: id })}>
              <span className="min-w-0 grow truncate">{id}</span>
              <span className="text-xs text-ink-faint">{plural(dataset.tasks, "tasks")}</span>
            </Choice>
          );
        })}
        <Choice on={!wish.dataset} choose={() => change({ dataset: "" })}>
          Choose tasks
        </Choice>
      </div>
    </fieldset>
  );
}

function Choice({ on, choose, children }: { on: boolean; choose: () => void; children: React.ReactNode }) {
  return (
    <label className="flex cursor-pointer items-center gap-2 px-2 py-1 text-sm hover:bg-raised">
      <input type="radio" name="dataset" checked={on} onChange={choose} />
      {children}
    </label>
  );
}
