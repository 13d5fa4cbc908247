import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { usePages } from "@/api/paging";
import { Headline } from "@/pages/job/Headline";
import { TRIAL_COLUMNS } from "@/pages/job/TrialTable";
import { DataTable } from "@/parts/DataTable";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { Progress } from "@/parts/Progress";
import { JobStatus } from "@/parts/State";

type Trial = Schemas["TrialItem"];

/** A job with its numbers and its trials. Numbers of trials are no links: the addresses of the service are not open. */
const COLUMNS = TRIAL_COLUMNS.map((column) =>
  column.id === "id" ? { ...column, cell: (trial: Trial) => trial.id } : column,
);

export function SharedJob({ id, secret }: { id: number; secret: string }) {
  const navigate = useNavigate();
  const path = { job_id: id };
  const job = useQuery({
    queryKey: ["job", id],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path } })),
  });
  const report = useQuery({
    queryKey: ["job", id, "report"],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}/report", { params: { path } })),
  });
  const trials = usePages(["job", id, "trials"], (page) =>
    unwrap(api.GET("/api/v1/jobs/{job_id}/trials", { params: { path, query: page as never } })),
  );
  const open = useCallback(
    (trial: Trial) => void navigate({ to: "/shared", search: { trial: String(trial.id) } as never, hash: secret }),
    [navigate, secret],
  );
  if (job.error) return <Trouble error={job.error} />;
  if (!job.data) return <Waiting rows={10} />;
  return (
    <>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="min-w-0 truncate">
          {job.data.name} <span className="font-normal text-ink-faint">#{id}</span>
        </h1>
        <JobStatus status={job.data.status} />
        <span className="w-56">
          <Progress counts={job.data.counts} />
        </span>
      </header>
      <Headline job={job.data} report={report.data} />
      <Panel flush>
        {trials.error ? <Trouble error={trials.error} /> : null}
        {trials.isPending ? (
          <Waiting />
        ) : (
          <DataTable
            name="trials"
            rows={trials.rows}
            columns={COLUMNS}
            rowKey={(trial) => trial.id}
            onEnd={trials.more}
            whole={trials.isWhole}
            all={trials.all}
            onOpen={open}
            empty={<Empty>This job has no trials.</Empty>}
          />
        )}
      </Panel>
    </>
  );
}
