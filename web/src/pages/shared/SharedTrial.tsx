import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import { api, unwrap } from "@/api/client";
import { Details } from "@/pages/trial/Details";
import { keyOf, useFiles } from "@/pages/trial/files";
import { liveTerminal } from "@/pages/trial/liveTerminal";
import { useRecording } from "@/pages/trial/recording";
import { Screen } from "@/pages/trial/Screen";
import { stepsOf } from "@/pages/trial/steps";
import { Transcript } from "@/pages/trial/Transcript";
import { configuration } from "@/parts/format";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { StateLabel, statusOf } from "@/parts/State";

const NOTHING = () => undefined;

/** A trial as it ended: recording, transcript, tests, logs and files. */
export function SharedTrial({ id, secret, ofJob }: { id: number; secret: string; ofJob: boolean }) {
  const path = { trial_id: id };
  const trial = useQuery({
    queryKey: ["trial", id],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}", { params: { path } })),
  });
  const ended = trial.data?.state === "ended";
  const of = { trial: id, tryNumber: undefined, tries: trial.data?.attempt ?? 0 };
  const files = useFiles(of, ended);
  const names = useMemo(() => files.data?.items.map((file) => file.path) ?? [], [files.data]);
  const left = (ending: string) => names.some((name) => name.endsWith(ending));
  const recording = useRecording(of, left(".cast"));
  const trajectory = useQuery({
    queryKey: keyOf(of, "trajectory"),
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}/trajectory", { params: { path } })),
    enabled: left("trajectory.json"),
  });
  const steps = useMemo(() => stepsOf(trajectory.data), [trajectory.data]);
  const live = useMemo(() => liveTerminal(), []);
  if (trial.error) return <Trouble error={trial.error} />;
  if (!trial.data) return <Waiting rows={12} />;
  const { task, repeat, outcome, reward, result } = trial.data;
  return (
    <>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-1">
        {ofJob ? (
          <Link to="/shared" search={{} as never} hash={secret} className="text-sm text-ink-soft">
            ‹ all trials
          </Link>
        ) : null}
        <h1 className="min-w-0 break-words">
          {task.name}{" "}
          <span className="font-normal text-ink-soft">
            · {configuration(trial.data)} · attempt {repeat}
          </span>
        </h1>
        <StateLabel of={statusOf(trial.data)} note={reward == null ? undefined : `reward ${reward}`} />
      </header>
      {result?.message && outcome !== "passed" ? <p className="text-sm text-ink-soft">{result.message}</p> : null}
      {left(".cast") ? (
        <Panel title="Terminal, recorded" flush>
          <Screen state="ended" live={live} recording={recording} goal={null} onTime={NOTHING} />
        </Panel>
      ) : null}
      {steps.length ? (
        <Panel title="Transcript" flush>
          <Transcript steps={steps} of={of} files={names} find="" pending={false} />
        </Panel>
      ) : null}
      <Panel flush>
        <Details trial={trial.data} steps={steps} of={of} ended={ended} />
      </Panel>
    </>
  );
}
