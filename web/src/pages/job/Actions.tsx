import { useNavigate } from "@tanstack/react-router";

import { useAct } from "@/api/act";
import { api, type Schemas } from "@/api/client";
import { Button } from "@/parts/Button";
import { plural } from "@/parts/format";
import { Trouble } from "@/parts/Notice";

/** Cancel what is left, run errors again, go on with what was cancelled, forget a job that ended. */
export function Actions({ job }: { job: Schemas["JobDetail"] }) {
  const navigate = useNavigate();
  const { busy, error, act } = useAct(["job", job.id]);
  const path = { params: { path: { job_id: job.id } } };

  async function forget() {
    if (!window.confirm(`Delete job ${job.id} with all of its results and files? This cannot be undone.`)) return;
    // Away first: what is gone must not be asked for again.
    await act(async () => {
      await api.DELETE("/api/v1/jobs/{job_id}", path);
      await navigate({ to: "/" });
    });
  }

  return (
    <div className="flex flex-wrap items-center gap-2">
      {error ? (
        <div className="basis-full">
          <Trouble error={error} />
        </div>
      ) : null}
      {job.ended_at ? null : (
        <Button
          kind="danger"
          disabled={busy}
          onClick={() => void act(() => api.POST("/api/v1/jobs/{job_id}/cancel", path))}
        >
          Cancel
        </Button>
      )}
      {job.counts.error ? (
        <Button
          disabled={busy}
          onClick={() =>
            void act(() => api.POST("/api/v1/jobs/{job_id}/retry", { ...path, body: { outcomes: ["error"] } as never }))
          }
        >
          Retry {plural(job.counts.error, "errors")}
        </Button>
      ) : null}
      {job.counts.cancelled ? (
        <Button disabled={busy} onClick={() => void act(() => api.POST("/api/v1/jobs/{job_id}/resume", path))}>
          Resume
        </Button>
      ) : null}
      {job.ended_at ? (
        <Button kind="quiet" disabled={busy} onClick={() => void forget()}>
          Delete
        </Button>
      ) : null}
    </div>
  );
}
