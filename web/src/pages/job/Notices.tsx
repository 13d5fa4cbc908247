import type { Schemas } from "@/api/client";

/** What every reader of the numbers must know first: attempts that were added or removed, trials that were cancelled. */
export function Notices({ job, report }: { job: Schemas["JobDetail"]; report: Schemas["JobReport"] | undefined }) {
  const expected = notices(job);
  // What a job that stops when settled found has a panel of its own.
  const found = report?.notices?.filter((notice) => !report.settled || !notice.startsWith(report.settled.sentence));
  if ((found ? !found.length : !expected) && !job.obstacle) return null;
  return (
    <ul
      aria-label="Notices"
      className="rounded-lg border border-error/40 bg-panel px-3 py-1.5 text-sm leading-6 text-error"
      // The report comes a moment later than the job: its place is kept.
      style={{ minHeight: report ? undefined : `calc(${expected + (job.obstacle ? 1 : 0)} * 1.5rem + 0.75rem + 2px)` }}
    >
      {job.obstacle && <li>{job.obstacle}</li>}
      {found?.map((notice) => <li key={notice}>{notice}</li>)}
    </ul>
  );
}

function notices({ added, counts, tasks, agents, attempts }: Schemas["JobDetail"]): number {
  const removed = counts.total < tasks * agents.length * attempts;
  return [added != null, removed, counts.cancelled > 0].filter(Boolean).length;
}
