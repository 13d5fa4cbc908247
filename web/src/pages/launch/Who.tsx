import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { FIELD } from "@/parts/field";
import { Panel } from "@/parts/Panel";
import { PickList } from "./PickList";
import type { Wish } from "./wish";

/** What people begin with comes first; the rest keeps its order. */
const FIRST = ["oracle", "terminus-2", "nop", "mini-swe-agent"];
const rank = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);

type Model = Schemas["ModelItem"];

/** The keys that the chosen models still lack. A model that is not listed takes those of its provider's other models. */
function keyNames(chosen: string[], known: Model[]): string[] {
  const lacking = chosen.flatMap((id) => {
    const model =
      known.find((one) => one.id === id) ??
      known.find((one) => one.keys.length && one.id.split("/")[0] === id.split("/")[0]);
    return model && !model.ready ? model.keys.slice(0, 1) : [];
  });
  return [...new Set(lacking)];
}

type Props = {
  wish: Wish;
  change: (part: Partial<Wish>) => void;
  keys: Record<string, string>;
  setKeys: (keys: Record<string, string>) => void;
};

const NONE: Schemas["AgentItem"][] = [];

/** The agents that can be named; none while the service has not told. */
export function useAgents(): Schemas["AgentItem"][] {
  const { data } = useQuery({ queryKey: ["agents"], queryFn: () => unwrap(api.GET("/api/v1/agents")) });
  return data?.items ?? NONE;
}

export function Who({ wish, change, keys, setKeys }: Props) {
  const agents = useAgents();
  const models = useQuery({ queryKey: ["models"], queryFn: () => unwrap(api.GET("/api/v1/models")) });
  const takesModel =
    agents.some((agent) => wish.agents.includes(agent.name) && agent.takes_model) ||
    wish.agents.some((name) => name.includes(":"));
  const needed = keyNames(wish.models, models.data?.items ?? []);
  if (wish.configurations.length)
    return (
      <Panel title="Agents & models">
        <Configurations wish={wish} change={change} />
        <Keys names={needed} keys={keys} setKeys={setKeys} />
      </Panel>
    );
  return (
    <Panel title="Agents & models">
      <div className="flex flex-col gap-3">
        <PickList
          label="agents"
          allowOther
          height="10rem"
          chosen={wish.agents}
          onChange={(chosen) => change({ agents: chosen })}
          options={[...agents]
            .sort((a, b) => rank(a.name) - rank(b.name))
            .map((agent) => ({ id: agent.name, name: agent.name, note: agent.description }))}
        />
        {takesModel ? (
          <PickList
            label="models"
            allowOther
            height="9rem"
            chosen={wish.models}
            onChange={(chosen) => change({ models: chosen })}
            options={(models.data?.items ?? []).map((model) => ({
              id: model.id,
              name: `${model.name} · ${model.provider}`,
              note: model.id,
            }))}
          />
        ) : (
          <p className="text-sm text-ink-soft">These agents take no model.</p>
        )}
        {takesModel ? <Keys names={needed} keys={keys} setKeys={setKeys} /> : null}
      </div>
    </Panel>
  );
}

/** Agents with their own options, as another job had them. */
function Configurations({ wish, change }: Pick<Props, "wish" | "change">) {
  return (
    <div className="mb-3 flex flex-col items-start gap-2">
      <p className="text-sm text-ink-soft">As in the job that was cloned, with the options of each:</p>
      <ul aria-label="Configurations" className="w-full rounded-md border">
        {wish.configurations.map((agent, index) => (
          <li key={index} className="flex items-start gap-2 px-2 py-1 text-sm">
            <span className="min-w-0 grow">
              <span className="block truncate">{agent.model ? `${agent.name} / ${agent.model}` : agent.name}</span>
              <code className="block font-mono text-xs break-words text-ink-faint">{optionsText(agent.options)}</code>
            </span>
            <Button
              kind="quiet"
              onClick={() => change({ configurations: wish.configurations.filter((_, other) => other !== index) })}
            >
              Remove
            </Button>
          </li>
        ))}
      </ul>
      <Button onClick={() => change({ configurations: [] })}>Choose others</Button>
    </div>
  );
}

function optionsText(options: Record<string, unknown> | undefined): string {
  return Object.entries(options ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

function Keys({ names, keys, setKeys }: { names: string[] } & Pick<Props, "keys" | "setKeys">) {
  return names.map((name) => (
    <label key={name} className="text-sm">
      <span className="text-ink-soft">
        {name} <span className="text-xs">(for this job alone; sent in a header, sealed, deleted when the job ends)</span>
      </span>
      <input
        type="password"
        autoComplete="off"
        className={`${FIELD} mt-1 w-full font-mono`}
        defaultValue=""
        onChange={(event) => setKeys({ ...keys, [name]: event.target.value })}
      />
    </label>
  ));
}
