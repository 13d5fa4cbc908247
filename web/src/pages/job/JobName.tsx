/** The job's name, which can be changed, and its pin. What it ran stays as it is. */

import { type FormEvent, useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas } from "@/api/client";
import { Button } from "@/parts/Button";
import { FIELD } from "@/parts/field";
import { Trouble } from "@/parts/Notice";

export function JobName({ job }: { job: Schemas["JobDetail"] }) {
  const [name, setName] = useState<string | null>(null);
  const { busy, error, act } = useAct(["job", job.id]);
  const change = (body: Schemas["JobChange"]) =>
    act(() => api.PATCH("/api/v1/jobs/{job_id}", { params: { path: { job_id: job.id } }, body }));
  async function save(event: FormEvent) {
    event.preventDefault();
    if (await change({ name: name?.trim() ?? "" })) setName(null);
  }
  return (
    <>
      {name == null ? (
        <Button kind="quiet" onClick={() => setName(job.name)}>
          Rename
        </Button>
      ) : (
        <form onSubmit={(event) => void save(event)} className="flex gap-2">
          <input
            aria-label="Name of the job"
            autoFocus
            maxLength={400}
            value={name}
            onChange={(event) => setName(event.target.value)}
            className={`${FIELD} w-56 max-w-full`}
          />
          <Button type="submit" disabled={busy}>
            Save
          </Button>
          <Button kind="quiet" onClick={() => setName(null)}>
            Cancel
          </Button>
        </form>
      )}
      <Button kind="quiet" disabled={busy} aria-pressed={job.pinned} onClick={() => void change({ pinned: !job.pinned })}>
        {job.pinned ? "Unpin" : "Pin"}
      </Button>
      {error ? <Trouble error={error} /> : null}
    </>
  );
}
