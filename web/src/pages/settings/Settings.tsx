/** Who may come in, which keys are here, and what the service is set to. */

import { useQuery, useQueryClient } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { useTitle } from "@/parts/title";
import { LimitTable } from "./LimitTable";
import { ProviderKeys } from "./ProviderKeys";
import { Sandboxes } from "./Sandboxes";
import { Tokens } from "./Tokens";

export default function Settings() {
  useTitle("Settings");
  const queries = useQueryClient();
  const session = useQuery({ queryKey: ["session"], queryFn: () => unwrap(api.GET("/api/v1/session")) });
  const admin = session.data?.role === "admin" || session.data?.auth === "none";
  // Which panels there are depends on who asks: none of them is shown before that is known, and none has to move.
  if (!session.data)
    return (
      <div className="flex flex-col gap-3">
        <h1>Settings</h1>
        {session.error ? <Trouble error={session.error} /> : <Waiting rows={12} />}
      </div>
    );
  return (
    <div className="flex flex-col gap-3">
      <h1>Settings</h1>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-3 xl:grid-cols-2">
        <div className="flex flex-col gap-3">
          <Panel title="You" minHeight={82}>
            {session.data?.auth === "none" ? (
              <p className="text-sm">This service requires no token: everybody who can reach it has full access.</p>
            ) : session.data ? (
              <div className="flex items-center gap-3 text-sm">
                <span>
                  {session.data.name ?? "not signed in"} {session.data.role ? `(${session.data.role})` : ""}
                </span>
                <Button onClick={() => void api.DELETE("/api/v1/session").then(() => queries.invalidateQueries())}>
                  Sign out
                </Button>
              </div>
            ) : null}
          </Panel>
          {admin ? (
            <>
              <ProviderKeys />
              <Tokens />
            </>
          ) : session.data ? (
            <p className="text-sm text-ink-soft">Tokens and provider keys are for admins.</p>
          ) : null}
        </div>
        <div className="flex flex-col gap-3">
          <LimitTable />
          <Sandboxes />
        </div>
      </div>
    </div>
  );
}
