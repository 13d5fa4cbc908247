import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import { Panel } from "@/parts/Panel";

const NAMES: [keyof Schemas["Limits"], string, string][] = [
  ["trial_limit_sec", "A whole trial", "s"], ["default_cpus", "CPUs where a task says nothing", ""], ["default_memory_mb", "Memory where a task says nothing", "MB"],
  ["default_pids", "Processes in a sandbox", ""], ["network_mode", "Network where a task says nothing", ""], ["upload_limit_mb", "Largest upload", "MB"], ["archive_limit_mb", "Largest archive, unpacked", "MB"],
  ["waiting_limit", "Waiting AgentCompass calls at once", ""], ["lease_sec", "A worker may be silent", "s"], ["model_patience_sec", "Patience with a model's service", "s"],
  ["disk_low_water_mb", "No new work below free disk of", "MB"], ["image_low_water_gb", "Images are pruned below free disk of", "GB"],
];

/** What the service is set to, and what can run here. */
export function Limits() {
  const limits = useQuery({ queryKey: ["limits"], queryFn: () => unwrap(api.GET("/api/v1/limits")) });
  const sandboxes = useQuery({ queryKey: ["sandboxes"], queryFn: () => unwrap(api.GET("/api/v1/sandboxes")) });
  const queue = useQuery({ queryKey: ["queue"], queryFn: () => unwrap(api.GET("/api/v1/queue")) });
  return (
    <Panel title="Limits and sandboxes">
      <dl className="grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-ink-soft">Trials at once</dt><dd>{queue.data?.capacity ?? "–"}</dd>
        {limits.data ? NAMES.map(([name, words, unit]) => [
          <dt key={`${name}-name`} className="text-ink-soft">{words}</dt>,
          <dd key={name}>{`${limits.data[name]} ${unit}`}</dd>,
        ]) : null}
        {sandboxes.data?.items.map((sandbox) => [
          <dt key={`${sandbox.name}-name`} className="text-ink-soft">{sandbox.name}{sandbox.default ? " (default)" : ""}</dt>,
          <dd key={sandbox.name}>{sandbox.description}</dd>,
        ])}
      </dl>
      <p className="mt-3 text-sm text-ink-soft">Limits are set where the service runs, by <code className="font-mono text-xs">SEATRIAL_</code> variables or <code className="font-mono text-xs">seatrial.toml</code>.</p>
    </Panel>
  );
}
