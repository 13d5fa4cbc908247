/** One of two trials that are looked at together: what it left, and where its recording is. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { keyOf, useFiles } from "../trial/files";
import { beginning, type Recording, useRecording } from "../trial/recording";
import { type Step, stepsOf } from "../trial/steps";

export type Side = {
  trial: Schemas["TrialDetail"] | undefined;
  /** Planned attempts of its job. */
  attempts: number | undefined;
  error: Error | null;
  steps: Step[];
  pending: boolean;
  recording: Recording;
  /** A moment of the clock that the recording goes to; a new object each time. */
  goal: { second: number } | null;
  seek: (moment: number) => void;
  /** Where the recording is, as a moment of the clock. */
  played: (second: number) => number | null;
};

export function useSide(id: number | undefined): Side {
  const path = { trial_id: id ?? 0 };
  const trial = useQuery({
    queryKey: ["trial", id],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}", { params: { path } })),
    enabled: id != null,
  });
  const job = useQuery({
    queryKey: ["job", trial.data?.job_id],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: trial.data?.job_id ?? 0 } } })),
    enabled: !!trial.data,
  });
  const of = { trial: id ?? 0, tryNumber: undefined, tries: trial.data?.attempt ?? 0 };
  const files = useFiles(of, trial.data?.state === "ended");
  const left = (ending: string) => !!files.data?.items.some((file) => file.path.endsWith(ending));
  const recording = useRecording(of, left(".cast"));
  const trajectory = useQuery({
    queryKey: keyOf(of, "trajectory"),
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}/trajectory", { params: { path } })),
    enabled: left("trajectory.json"),
  });
  const steps = useMemo(() => stepsOf(trajectory.data), [trajectory.data]);
  const start = useMemo(() => beginning(recording, steps), [recording, steps]);
  const [goal, setGoal] = useState<{ second: number } | null>(null);
  const seek = useCallback(
    (moment: number) => {
      if (start != null) setGoal({ second: Math.max(0, (moment - start) / 1000) });
    },
    [start],
  );
  const played = useCallback((second: number) => (start == null ? null : start + second * 1000), [start]);
  return {
    trial: trial.data,
    attempts: job.data?.attempts,
    error: trial.error,
    steps,
    pending: trial.isPending || files.isPending || (left("trajectory.json") && trajectory.isPending),
    recording: files.isPending ? { ...recording, pending: true } : recording,
    goal,
    seek,
    played,
  };
}

/** The step that is going on at a moment. */
export function stepAt(steps: Step[], moment: number | null): number {
  return moment == null ? -1 : steps.findLastIndex((step) => step.at != null && step.at <= moment);
}
