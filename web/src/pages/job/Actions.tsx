import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api, type Schemas } from "@/api/client";
import { Button } from "@/parts/Button";
import { Trouble } from "@/parts/Notice";

/** Cancel what is left, run errors again, go on with what was cancelled, forget a job that ended. */
export function Actions({ job }: { job: Schemas["JobDetail"] }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const path = { params: { path: { job_id: job.id } } };

  async function act(call: () => Promise<unknown>) {
    setBusy(true);
    setError(undefined);
    try {
      await call();
      await queries.invalidateQueries({ queryKey: ["job", job.id] });
    } catch (fault) {
      setError(fault);
    } finally {
      setBusy(false);
    }
  }

  async function forget() {
    if (!window.confirm(`Delete job ${job.id} with all of its results and files? This cannot be undone.`)) return;
    await act(() => api.DELETE("/api/v1/jobs/{job_id}", path));
    await navigate({ to: "/" });
  }

  return (
    <div className="flex flex-wrap items-center gap-2">
      {error ? <div className="basis-full"><Trouble error={error} /></div> : null}
      {job.ended_at ? null : <Button kind="danger" disabled={busy} onClick={() => void act(() => api.POST("/api/v1/jobs/{job_id}/cancel", path))}>Cancel</Button>}
      {job.counts.error ? (
        <Button disabled={busy} onClick={() => void act(() => api.POST("/api/v1/jobs/{job_id}/retry", { ...path, body: { outcomes: ["error"] } as never }))}>Retry {job.counts.error} errors</Button>
      ) : null}
      {job.counts.cancelled ? <Button disabled={busy} onClick={() => void act(() => api.POST("/api/v1/jobs/{job_id}/resume", path))}>Resume</Button> : null}
      {job.ended_at ? <Button kind="quiet" disabled={busy} onClick={() => void forget()}>Delete</Button> : null}
    </div>
  );
}
