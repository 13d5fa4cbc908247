import type { Schemas } from "@/api/client";
import { Copy } from "@/parts/Copy";
import { Empty } from "@/parts/Notice";

/** Everything that decided how it ran, what protected it, and what could not be applied. */
export function LockView({ agent, lock }: { agent: Schemas["AgentSpec"]; lock: Schemas["Lock"] | null | undefined }) {
  if (!lock) return <Empty>The lock is written when a try ends.</Empty>;
  const rows: [string, string][] = [
    ["task", lock.task_digest],
    ["sandbox", lock.sandbox],
    ["image", lock.image ?? "–"],
    ["image digest", lock.image_digest ?? "–"],
    ["image came from", lock.image_source ?? "–"],
    ["agent", `${lock.agent} ${lock.agent_version}`],
    ["agent kit", lock.agent_kit ?? "–"],
    ["model", lock.model ?? "–"],
    ["network", lock.network || "–"],
    ["limits", JSON.stringify(lock.limits)],
    ["time limits ×", String(lock.timeout_multiplier)],
    ["Seatrial / Harbor", `${lock.seatrial} / ${lock.harbor}`],
  ];
  return (
    <div className="flex flex-col gap-4 p-3 text-sm">
      <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-6 gap-y-1">
        {rows.map(([name, value]) => [
          <dt key={`${name}-name`} className="text-ink-soft">
            {name}
          </dt>,
          <dd key={name} className="font-mono text-xs break-all">
            {value}
          </dd>,
        ])}
      </dl>
      <div>
        <h2>Protections applied</h2>
        <ul className="mt-1 list-disc pl-5">
          {lock.protections.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      </div>
      {lock.not_applied.length ? (
        <div>
          <h2 className="text-error">Not applied here</h2>
          <ul className="mt-1 list-disc pl-5 text-error">
            {lock.not_applied.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </div>
      ) : null}
      <div>
        <Copy text={JSON.stringify({ agent, lock }, null, 2)}>Copy as JSON</Copy>
      </div>
    </div>
  );
}
