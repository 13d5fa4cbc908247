import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { ConfirmButton } from "@/parts/ConfirmButton";
import { Copy } from "@/parts/Copy";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { FIELD } from "@/parts/field";
import { exact } from "@/parts/format";
import { Moment } from "@/parts/Moment";
import { Trouble } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";

type Token = Schemas["TokenItem"];

const ROLES = ["viewer", "user", "admin"];
const SPANS: [string, string][] = [
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "a year"],
  ["never", "no end"],
];

/** Tokens with a role. Each is shown once, when it is made. */
export function Tokens() {
  const [wish, setWish] = useState({ name: "", role: "user" as Schemas["Role"], expires: "30d" });
  const [made, setMade] = useState<Schemas["TokenMade"]>();
  const tokens = useQuery({ queryKey: ["tokens"], queryFn: () => unwrap(api.GET("/api/v1/tokens")) });
  const { busy, error, act } = useAct(["tokens"]);

  async function make(event: FormEvent) {
    event.preventDefault();
    if (await act(async () => setMade(await unwrap(api.POST("/api/v1/tokens", { body: wish })))))
      setWish({ ...wish, name: "" });
  }

  const columns: Column<Token>[] = [
    {
      id: "name",
      name: "Name",
      width: "minmax(8rem, 1fr)",
      cell: (token) => (
        <span className={token.valid ? "font-medium" : "text-ink-faint line-through"} title={token.name}>
          {token.name}
        </span>
      ),
      value: (token) => token.name,
    },
    { id: "role", name: "Role", width: "5rem", cell: (token) => token.role, value: (token) => token.role },
    {
      id: "until",
      name: "Until",
      width: "7rem",
      align: "right",
      cell: (token) => <Until of={token} />,
      value: (token) => token.expires_at,
    },
    {
      id: "used",
      name: "Last used",
      width: "6rem",
      align: "right",
      cell: (token) => <Moment at={token.used_at} />,
      value: (token) => token.used_at,
    },
    {
      id: "revoke",
      name: "",
      width: "6.25rem",
      align: "right",
      cell: (token) =>
        token.valid ? (
          <ConfirmButton
            kind="quiet"
            disabled={busy}
            question={`Revoke the token ${token.name}? It is refused from now on. This cannot be undone.`}
            verb="Revoke the token"
            onConfirm={() =>
              void act(() => api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: token.id } } }))
            }
            aria-label={`Revoke ${token.name}`}
          >
            Revoke
          </ConfirmButton>
        ) : null,
    },
  ];
  return (
    <Panel flush>
      {tokens.error ? <Trouble error={tokens.error} /> : null}
      {made ? (
        <div className="m-3 rounded-md bg-accent-soft p-2 text-sm" role="status">
          <p>Copy the token of {made.name} now; it is not shown again.</p>
          <p className="mt-1 flex items-center gap-2">
            <code className="font-mono text-xs break-all">{made.secret}</code>
            <Copy text={made.secret}>Copy</Copy>
          </p>
        </div>
      ) : null}
      <DataTable
        title="Tokens"
        name="tokens"
        rows={tokens.data?.items ?? []}
        columns={columns}
        rowKey={(token) => token.id}
        height="16rem"
        empty={
          <p className="p-3 text-sm text-ink-soft">
            None. A service that asks for tokens needs one for everybody who uses it.
          </p>
        }
      />
      <form onSubmit={(event) => void make(event)} className="flex flex-wrap gap-2 border-t p-3">
        <input
          className={`${FIELD} min-w-0 flex-1 basis-40`}
          aria-label="Token name"
          placeholder="who or what it is for"
          value={wish.name}
          onChange={(event) => setWish({ ...wish, name: event.target.value })}
        />
        <select
          className={FIELD}
          aria-label="Role"
          value={wish.role}
          onChange={(event) => setWish({ ...wish, role: event.target.value as Schemas["Role"] })}
        >
          {ROLES.map((role) => (
            <option key={role}>{role}</option>
          ))}
        </select>
        <select
          className={FIELD}
          aria-label="Expires"
          value={wish.expires}
          onChange={(event) => setWish({ ...wish, expires: event.target.value })}
        >
          {SPANS.map(([span, words]) => (
            <option key={span} value={span}>
              {words}
            </option>
          ))}
        </select>
        <Button kind="main" type="submit" disabled={busy || !wish.name.trim()}>
          Make a token
        </Button>
      </form>
      {error ? <Trouble error={error} /> : null}
    </Panel>
  );
}

function Until({ of }: { of: Token }) {
  if (!of.valid) return <span className="text-ink-faint">no longer</span>;
  return of.expires_at ? (
    <span title={exact(of.expires_at)}>{new Date(of.expires_at).toLocaleDateString()}</span>
  ) : (
    <span>no end</span>
  );
}
