import { useQuery } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { Panel } from "@/parts/Panel";

/** What can run here, as the workers found it. */
export function Limits() {
  const sandboxes = useQuery({ queryKey: ["sandboxes"], queryFn: () => unwrap(api.GET("/api/v1/sandboxes")) });
  const queue = useQuery({ queryKey: ["queue"], queryFn: () => unwrap(api.GET("/api/v1/queue")) });
  return (
    <Panel title="Limits and sandboxes">
      <dl className="grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-ink-soft">Trials at once</dt><dd>{queue.data?.capacity ?? "–"}</dd>
        {sandboxes.data?.items.map((sandbox) => [
          <dt key={`${sandbox.name}-name`} className="text-ink-soft">{sandbox.name}{sandbox.default ? " (default)" : ""}</dt>,
          <dd key={sandbox.name}>{sandbox.description}</dd>,
        ])}
      </dl>
      <p className="mt-3 text-sm text-ink-soft">Limits are set where the service runs, by <code className="font-mono text-xs">SEATRIAL_</code> variables or <code className="font-mono text-xs">seatrial.toml</code>.</p>
    </Panel>
  );
}
