import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { FIELD } from "@/parts/field";
import { Panel } from "@/parts/Panel";
import { SamplesButton } from "@/pages/tasks/SamplesButton";
import { PickList } from "./PickList";
import type { Wish } from "./wish";

export function What({ wish, change }: { wish: Wish; change: (part: Partial<Wish>) => void }) {
  const tasks = useQuery({
    queryKey: ["tasks", "all"],
    queryFn: () => unwrap(api.GET("/api/v1/tasks", { params: { query: { limit: 500 } as never } })),
  });
  const datasets = useQuery({ queryKey: ["datasets"], queryFn: () => unwrap(api.GET("/api/v1/datasets")) });
  const options = (tasks.data?.items ?? []).map((task) => ({
    id: task.digest,
    name: task.name,
    note: task.description || task.category,
  }));
  return (
    <Panel
      title="What"
      side={
        <span className="text-xs text-ink-faint">{wish.dataset ? "a dataset" : `${wish.tasks.length} chosen`}</span>
      }
    >
      {datasets.data?.items.length ? (
        <label className="mb-2 flex items-center gap-2 text-sm">
          Dataset
          <select
            className={`${FIELD} grow`}
            value={wish.dataset}
            onChange={(event) => change({ dataset: event.target.value })}
          >
            <option value="">none: choose tasks</option>
            {datasets.data.items.map((dataset) => (
              <option key={`${dataset.name}@${dataset.version}`} value={`${dataset.name}@${dataset.version}`}>
                {dataset.name}@{dataset.version} ({dataset.tasks} tasks)
              </option>
            ))}
          </select>
        </label>
      ) : null}
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
          height="22rem"
        />
      )}
    </Panel>
  );
}
