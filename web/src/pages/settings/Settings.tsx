/** Who may come in, which keys are here, and what the service is set to. */

import { useQuery, useQueryClient } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { Panel } from "@/parts/Panel";
import { Limits } from "./Limits";
import { ProviderKeys } from "./ProviderKeys";
import { Tokens } from "./Tokens";

export default function Settings() {
  const queries = useQueryClient();
  const session = useQuery({ queryKey: ["session"], queryFn: () => unwrap(api.GET("/api/v1/session")) });
  const admin = session.data?.role === "admin" || session.data?.auth === "none";
  return (
    <div className="flex flex-col gap-3">
      <h1>Settings</h1>
      <Panel title="You">
        {session.data?.auth === "none" ? (
          <p className="text-sm">This service asks nobody for a token: whoever reaches it may do everything.</p>
        ) : (
          <div className="flex items-center gap-3 text-sm">
            <span>{session.data?.name ?? "not signed in"} {session.data?.role ? `(${session.data.role})` : ""}</span>
            <Button onClick={() => void api.DELETE("/api/v1/session").then(() => queries.invalidateQueries())}>Sign out</Button>
          </div>
        )}
      </Panel>
      {admin ? <><ProviderKeys /><Tokens /></> : <p className="text-sm text-ink-soft">Tokens and provider keys are for admins.</p>}
      <Limits />
    </div>
  );
}
