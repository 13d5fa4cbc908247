import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { ConfirmButton } from "@/parts/ConfirmButton";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { FIELD } from "@/parts/field";
import { Moment } from "@/parts/Moment";
import { Trouble } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";

type Key = Schemas["KeyItem"];

const USUAL = [
  "OPENROUTER_API_KEY",
  "OPENAI_API_KEY",
  "ANTHROPIC_API_KEY",
  "GEMINI_API_KEY",
  "DEEPSEEK_API_KEY",
  "MISTRAL_API_KEY",
];

/** Keys go in and never come out: the page can see their names only. */
export function ProviderKeys() {
  const [name, setName] = useState(USUAL[0] as string);
  const [value, setValue] = useState("");
  const keys = useQuery({ queryKey: ["keys"], queryFn: () => unwrap(api.GET("/api/v1/keys")) });
  const { busy, error, act } = useAct(["keys"]);

  async function save(event: FormEvent) {
    event.preventDefault();
    if (await act(() => api.PUT("/api/v1/keys/{name}", { params: { path: { name } }, body: { value } }))) setValue("");
  }

  const columns: Column<Key>[] = [
    {
      id: "name",
      name: "Name",
      width: "minmax(12rem, 1fr)",
      cell: (key) => <code className="font-mono text-xs">{key.name}</code>,
      value: (key) => key.name,
    },
    {
      id: "set",
      name: "Set",
      width: "6rem",
      align: "right",
      cell: (key) => <Moment at={key.set_at} />,
      value: (key) => key.set_at,
    },
    {
      id: "delete",
      name: "",
      width: "6.25rem",
      align: "right",
      cell: (key) => (
        <ConfirmButton
          kind="quiet"
          disabled={busy}
          question={`Delete ${key.name}? Jobs that need it fail until it is set again.`}
          verb="Delete the key"
          onConfirm={() => void act(() => api.DELETE("/api/v1/keys/{name}", { params: { path: { name: key.name } } }))}
          aria-label={`Delete ${key.name}`}
        >
          Delete
        </ConfirmButton>
      ),
    },
  ];
  return (
    <Panel flush>
      {keys.error ? <Trouble error={keys.error} /> : null}
      <DataTable
        title="Provider keys"
        name="keys"
        rows={keys.data?.items ?? []}
        columns={columns}
        rowKey={(key) => key.name}
        height="16rem"
        empty={
          <p className="p-3 text-sm text-ink-soft">
            None. Jobs then need a key of their own, or one from the service's environment.
          </p>
        }
      />
      <form onSubmit={(event) => void save(event)} className="flex flex-wrap gap-2 border-t p-3">
        <input
          className={`${FIELD} min-w-0 flex-1 basis-52 font-mono`}
          aria-label="Key name"
          list="usual-keys"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <datalist id="usual-keys">
          {USUAL.map((usual) => (
            <option key={usual} value={usual} />
          ))}
        </datalist>
        <input
          className={`${FIELD} min-w-0 flex-1 basis-52 font-mono`}
          aria-label="Key value"
          placeholder="paste the key; it is never shown again"
          type="password"
          autoComplete="off"
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
        <Button kind="main" type="submit" disabled={busy || !name || !value}>
          Save
        </Button>
      </form>
      {error ? <Trouble error={error} /> : null}
    </Panel>
  );
}
