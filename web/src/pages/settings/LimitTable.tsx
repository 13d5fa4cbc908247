import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { duration } from "@/parts/format";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";

type Limits = Schemas["Limits"];
type Limit = { name: keyof Limits; what: string; shown: string; plain: string | number };

const seconds = (value: number | string) => duration(Number(value));
const megabytes = (value: number | string) => `${Number(value).toLocaleString("en")} MB`;
const number = (value: number | string) => value.toLocaleString("en");

/** By what they hold to: trials, their sandboxes, what comes in, the machine. */
const LIMITS: [keyof Limits, string, (value: number | string) => string][] = [
  ["trial_limit_sec", "A whole trial", seconds],
  ["model_patience_sec", "Patience with a model's service", seconds],
  ["lease_sec", "A worker may be silent", seconds],
  ["default_cpus", "CPUs by default", number],
  ["default_memory_mb", "Memory by default", megabytes],
  ["network_mode", "Network by default", String],
  ["default_pids", "Processes in a sandbox", number],
  ["upload_limit_mb", "Largest upload", megabytes],
  ["archive_limit_mb", "Largest archive, unpacked", megabytes],
  ["waiting_limit", "Waiting AgentCompass calls", number],
  ["disk_low_water_mb", "Free disk: no new work below", megabytes],
  ["image_low_water_gb", "Free disk: images pruned below", (value) => `${value} GB`],
];

const COLUMNS: Column<Limit>[] = [
  {
    id: "what",
    name: "What",
    width: "minmax(15.5rem, 1fr)",
    cell: (limit) => limit.what,
    value: (limit) => limit.what,
  },
  {
    id: "value",
    name: "Limit",
    width: "6.5rem",
    align: "right",
    cell: (limit) => <span className="font-medium">{limit.shown}</span>,
    value: (limit) => limit.plain,
  },
  {
    id: "setting",
    name: "Set by",
    width: "minmax(15rem, 0.8fr)",
    cell: (limit) => <code className="font-mono text-xs text-ink-soft">{settingOf(limit.name)}</code>,
    value: (limit) => settingOf(limit.name),
  },
];

const settingOf = (name: string) => `SEATRIAL_${name.toUpperCase()}`;

/** What the service holds trials and visitors to. It is changed where the service runs. */
export function LimitTable() {
  const limits = useQuery({ queryKey: ["limits"], queryFn: () => unwrap(api.GET("/api/v1/limits")) });
  const rows = limits.data
    ? LIMITS.map(([name, what, show]) => ({ name, what, shown: show(limits.data[name]), plain: limits.data[name] }))
    : [];
  return (
    <Panel flush minHeight={530}>
      {limits.error ? <Trouble error={limits.error} /> : null}
      {limits.data ? (
        <DataTable
          title="Limits"
          name="limits"
          rows={rows}
          columns={COLUMNS}
          rowKey={(limit) => limit.name}
          height="32rem"
        />
      ) : (
        <Waiting rows={12} />
      )}
      <p className="border-t px-3 py-2 text-sm text-ink-soft">
        They are set where the service runs: as variables of its environment, or in{" "}
        <code className="font-mono text-xs">seatrial.toml</code>.
      </p>
    </Panel>
  );
}
