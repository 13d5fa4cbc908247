import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { Copy } from "@/parts/Copy";
import { Moment } from "@/parts/Moment";
import { Trouble } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";

/** Tokens with a role. Each is shown once, when it is made. */
export function Tokens() {
  const queries = useQueryClient();
  const [wish, setWish] = useState({ name: "", role: "user" as Schemas["Role"], expires: "30d" });
  const [made, setMade] = useState<Schemas["TokenMade"]>();
  const [error, setError] = useState<unknown>();
  const tokens = useQuery({ queryKey: ["tokens"], queryFn: () => unwrap(api.GET("/api/v1/tokens")) });

  async function change(call: () => Promise<unknown>) {
    setError(undefined);
    try {
      await call();
      await queries.invalidateQueries({ queryKey: ["tokens"] });
    } catch (fault) {
      setError(fault);
    }
  }

  function make(event: FormEvent) {
    event.preventDefault();
    void change(async () => {
      setMade(await unwrap(api.POST("/api/v1/tokens", { body: wish })));
      setWish({ ...wish, name: "" });
    });
  }

  const field = "h-7 rounded-md border border-line-strong bg-panel px-2 text-sm";
  return (
    <Panel title="Tokens">
      {tokens.error ? <Trouble error={tokens.error} /> : null}
      {made ? (
        <div className="mb-3 rounded-md bg-accent-soft p-2 text-sm" role="status">
          <p>Copy the token of {made.name} now; it is not shown again.</p>
          <p className="mt-1 flex items-center gap-2"><code className="font-mono text-xs break-all">{made.secret}</code><Copy text={made.secret}>Copy</Copy></p>
        </div>
      ) : null}
      <ul className="mb-3 flex flex-col gap-1 text-sm">
        {tokens.data?.items.length === 0 ? <li className="text-ink-soft">None. A service that asks for tokens needs one for everybody who uses it.</li> : null}
        {tokens.data?.items.map((token) => (
          <li key={token.id} className={`flex flex-wrap items-center gap-3 ${token.valid ? "" : "text-ink-faint line-through"}`}>
            <span className="font-medium">{token.name}</span><span>{token.role}</span>
            <span className="text-ink-soft">{token.expires_at ? <>until {new Date(token.expires_at).toLocaleDateString()}</> : "no end"} · used <Moment at={token.used_at} /></span>
            {token.valid ? <Button kind="quiet" onClick={() => void change(() => api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: token.id } } }))} aria-label={`Revoke ${token.name}`}>Revoke</Button> : null}
          </li>
        ))}
      </ul>
      <form onSubmit={make} className="flex flex-wrap gap-2">
        <input className={`${field} w-48`} aria-label="Token name" placeholder="Name" value={wish.name} onChange={(event) => setWish({ ...wish, name: event.target.value })} />
        <select className={field} aria-label="Role" value={wish.role} onChange={(event) => setWish({ ...wish, role: event.target.value as Schemas["Role"] })}>{["viewer", "user", "admin"].map((role) => <option key={role}>{role}</option>)}</select>
        <select className={field} aria-label="Expires" value={wish.expires} onChange={(event) => setWish({ ...wish, expires: event.target.value })}>{["7d", "30d", "90d", "365d", "never"].map((span) => <option key={span}>{span}</option>)}</select>
        <Button kind="main" type="submit" disabled={!wish.name.trim()}>Make a token</Button>
      </form>
      {error ? <Trouble error={error} /> : null}
    </Panel>
  );
}
