import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { Trouble } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";

type Sandbox = Schemas["SandboxItem"];

/** Where trials can run, and on how many of the workers that really works. */
export function Sandboxes() {
  const sandboxes = useQuery({ queryKey: ["sandboxes"], queryFn: () => unwrap(api.GET("/api/v1/sandboxes")) });
  const queue = useQuery({ queryKey: ["queue"], queryFn: () => unwrap(api.GET("/api/v1/queue")) });
  const alive = queue.data?.workers.filter((worker) => worker.alive) ?? [];
  const works = (sandbox: Sandbox) => {
    const on = alive.filter((worker) =>
      sandbox.name === "auto" ? worker.sandboxes?.length : worker.sandboxes?.includes(sandbox.name),
    );
    return `${on.length} of ${alive.length}`;
  };
  const columns: Column<Sandbox>[] = [
    {
      id: "name",
      name: "Sandbox",
      width: "9rem",
      cell: (one) => (
        <>
          <span className="font-medium">{one.name}</span>
          {one.default ? (
            <span className="ml-2 rounded-full bg-accent-soft px-1.5 py-0.5 text-xs text-accent">default</span>
          ) : null}
        </>
      ),
      value: (one) => one.name,
    },
    {
      id: "description",
      name: "What it is",
      width: "minmax(14rem, 1fr)",
      cell: (one) => (
        <span className="text-ink-soft" title={one.description}>
          {one.description}
        </span>
      ),
      value: (one) => one.description,
    },
    { id: "works", name: "Works on workers", width: "8.5rem", align: "right", cell: works, value: works },
  ];
  return (
    <Panel flush>
      {sandboxes.error ? <Trouble error={sandboxes.error} /> : null}
      <DataTable
        title="Sandboxes"
        name="sandboxes"
        rows={sandboxes.data?.items ?? []}
        columns={columns}
        rowKey={(one) => one.name}
        height="16rem"
      />
    </Panel>
  );
}
