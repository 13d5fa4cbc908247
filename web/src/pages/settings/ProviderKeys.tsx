import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { api, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { Moment } from "@/parts/Moment";
import { Trouble } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";

const USUAL = ["OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY"];

/** Keys go in and never come out: the page can see their names only. */
export function ProviderKeys() {
  const queries = useQueryClient();
  const [name, setName] = useState(USUAL[0] as string);
  const [value, setValue] = useState("");
  const [error, setError] = useState<unknown>();
  const keys = useQuery({ queryKey: ["keys"], queryFn: () => unwrap(api.GET("/api/v1/keys")) });

  async function change(call: () => Promise<unknown>) {
    setError(undefined);
    try {
      await call();
      setValue("");
      await queries.invalidateQueries({ queryKey: ["keys"] });
    } catch (fault) {
      setError(fault);
    }
  }

  function save(event: FormEvent) {
    event.preventDefault();
    void change(() => api.PUT("/api/v1/keys/{name}", { params: { path: { name } }, body: { value } }));
  }

  const field = "h-7 rounded-md border border-line-strong bg-panel px-2 text-sm";
  return (
    <Panel title="Provider keys" side={<span className="text-xs text-ink-faint">sealed; never shown again</span>}>
      {keys.error ? <Trouble error={keys.error} /> : null}
      <ul className="mb-3 flex flex-col gap-1 text-sm">
        {keys.data?.items.map((key) => (
          <li key={key.name} className="flex items-center gap-3">
            <code className="font-mono text-xs">{key.name}</code><span className="text-ink-soft">set <Moment at={key.set_at} /></span>
            <Button kind="quiet" onClick={() => void change(() => api.DELETE("/api/v1/keys/{name}", { params: { path: { name: key.name } } }))} aria-label={`Delete ${key.name}`}>Delete</Button>
          </li>
        ))}
        {keys.data?.items.length === 0 ? <li className="text-ink-soft">None. Jobs then need a key of their own, or one from the service's environment.</li> : null}
      </ul>
      <form onSubmit={save} className="flex flex-wrap gap-2">
        <input className={`${field} w-56 font-mono`} aria-label="Key name" list="usual-keys" value={name} onChange={(event) => setName(event.target.value)} />
        <datalist id="usual-keys">{USUAL.map((usual) => <option key={usual} value={usual} />)}</datalist>
        <input className={`${field} w-72 font-mono`} aria-label="Key value" type="password" autoComplete="off" value={value} onChange={(event) => setValue(event.target.value)} />
        <Button kind="main" type="submit" disabled={!name || !value}>Save</Button>
      </form>
      {error ? <Trouble error={error} /> : null}
    </Panel>
  );
}
