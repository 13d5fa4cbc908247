/** What the address of a comparison asks for: jobs, and maybe one of their configurations as the baseline. */

import { useQueries } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";

export type Wish = { baseline: string; other: string[] };
export type Comparison = Schemas["JudgedComparison"];

/** `JOB:CONFIGURATION`, as the service takes it. */
export const sideName = (job: number | null | undefined, configuration: string | undefined) =>
  `${job}:${configuration}`;

export function useJobs(jobs: number[]) {
  return useQueries({
    queries: jobs.map((job) => ({
      queryKey: ["job", job],
      queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: job } } })),
    })),
  });
}

/** Nothing yet while it is not known what there is to compare with a chosen baseline. */
export function wishOf(
  jobs: number[],
  baseline: string | undefined,
  found: { id: number; agents: string[] }[],
): Wish | null {
  if (!jobs.length) return null;
  if (!baseline) return { baseline: String(jobs[0]), other: jobs.slice(1).map(String) };
  if (found.length < jobs.length) return null;
  const sides = found.flatMap((job) => job.agents.map((label) => sideName(job.id, label)));
  return { baseline, other: sides.filter((side) => side !== baseline).slice(0, MOST) };
}

/** The service compares so many with a baseline at once. */
export const MOST = 20;
