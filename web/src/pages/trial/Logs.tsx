import { useQuery } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { useFilters } from "@/parts/Filters";
import { bytes } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { fileUrl, keyOf, type Try } from "./files";
import { LogText } from "./LogText";

export function Logs({ of, ended }: { of: Try; ended: boolean }) {
  const [filters, setFilter] = useFilters();
  const logs = useQuery({
    queryKey: keyOf(of, "logs"),
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/trials/{trial_id}/logs", {
          params: { path: { trial_id: of.trial }, query: { attempt: of.tryNumber } as never },
        }),
      ),
    enabled: ended,
  });
  if (!ended) return <Empty>Logs are stored when the try ends; the terminal above is live.</Empty>;
  if (logs.error) return <Trouble error={logs.error} />;
  if (!logs.data) return <Waiting />;
  const chosen = logs.data.items.find((log) => log.name === filters.log) ?? logs.data.items[0];
  if (!chosen) return <Empty>This try left no logs.</Empty>;
  const url = fileUrl(of.trial, chosen.name, logs.data.attempt);
  return (
    <div>
      <div className="flex flex-wrap gap-1 border-b px-2 py-1" role="group" aria-label="Logs">
        {logs.data.items.map((log) => (
          <button
            key={log.name}
            type="button"
            aria-pressed={log === chosen}
            onClick={() => setFilter("log", log.name)}
            className="rounded-md px-2 py-0.5 font-mono text-xs text-ink-soft hover:bg-raised aria-pressed:bg-accent-soft aria-pressed:text-accent"
          >
            {log.name} <span className="text-ink-faint">{bytes(log.size)}</span>
          </button>
        ))}
      </div>
      <LogText key={url} url={url} size={chosen.size} find={filters.find} />
    </div>
  );
}
