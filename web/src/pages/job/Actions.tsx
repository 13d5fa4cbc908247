import { Link, useNavigate } from "@tanstack/react-router";

import { useAct } from "@/api/act";
import { api, type Schemas } from "@/api/client";
import { Button, buttonLook } from "@/parts/Button";
import { ConfirmButton } from "@/parts/ConfirmButton";
import { plural } from "@/parts/format";
import { Trouble } from "@/parts/Notice";
import { ShareButton } from "@/parts/ShareButton";
import { JobName } from "./JobName";

/** Cancel what is left, run errors again, go on with what was cancelled, ask for the same again, delete. Every button keeps its place: one that appears
 * under a finger that is about to press another does harm. */
export function Actions({ job }: { job: Schemas["JobDetail"] }) {
  const navigate = useNavigate();
  const { busy, error, act } = useAct(["job", job.id]);
  const path = { params: { path: { job_id: job.id } } };
  const errors = job.counts.error;

  async function forget() {
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
      <JobName job={job} />
      <ShareButton job={job.id} />
      <a
        className={buttonLook("quiet")}
        href={`/api/v1/jobs/${job.id}/static.zip`}
        download
        title="Pages that open from disk, without a network"
      >
        Export
      </a>
      <ConfirmButton
        kind="danger"
        disabled={busy || !!job.ended_at}
        title={job.ended_at ? "The job has ended." : undefined}
        question={`Cancel what is left of job ${job.id}? Running trials stop, and what they did so far is lost. Resume runs cancelled trials from their beginning.`}
        verb="Cancel the job"
        onConfirm={() => void act(() => api.POST("/api/v1/jobs/{job_id}/cancel", path))}
      >
        Cancel
      </ConfirmButton>
      <Button
        disabled={busy || !errors}
        title={errors ? undefined : "No trial ended in an error."}
        onClick={() =>
          void act(() => api.POST("/api/v1/jobs/{job_id}/retry", { ...path, body: { outcomes: ["error"] } as never }))
        }
      >
        {errors ? `Retry ${plural(errors, "errors")}` : "Retry errors"}
      </Button>
      <Button
        disabled={busy || !job.counts.cancelled}
        title={job.counts.cancelled ? undefined : "No trial was cancelled."}
        onClick={() => void act(() => api.POST("/api/v1/jobs/{job_id}/resume", path))}
      >
        Resume
      </Button>
      <Link to="/launch" search={{ from: String(job.id) } as never} className={buttonLook()}>
        Clone
      </Link>
      <ConfirmButton
        kind="quiet"
        disabled={busy || !job.ended_at}
        title={job.ended_at ? undefined : "Cancel the job first."}
        question={`Delete job ${job.id} with all of its results and files? This cannot be undone.`}
        verb="Delete the job"
        onConfirm={() => void forget()}
      >
        Delete
      </ConfirmButton>
    </div>
  );
}
