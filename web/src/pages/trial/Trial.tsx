/** One trial: its story on one timeline. Steps and terminal move together; everything else is one tab away. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";

import { api, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { useFilters } from "@/parts/Filters";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { Details } from "./Details";
import { Header } from "./Header";
import { liveTerminal } from "./liveTerminal";
import { PhaseBar } from "./PhaseBar";
import { Screen } from "./Screen";
import { StepList } from "./StepList";
import { stepsOf } from "./steps";
import { useRecording } from "./recording";

export default function Trial() {
  const id = Number(useParams({ strict: false }).trial);
  const queries = useQueryClient();
  const [filters, setFilter] = useFilters();
  const attempt = filters.try ? Number(filters.try) : undefined;
  const query = { attempt } as never;
  const path = { trial_id: id };
  const trial = useQuery({ queryKey: ["trial", id], queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}", { params: { path } })) });
  const running = trial.data?.state === "running";
  const live = useMemo(() => liveTerminal(), [id]);
  const [liveSteps, setLiveSteps] = useState(0);
  const trajectory = useQuery({
    queryKey: ["trial", id, "trajectory", attempt],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}/trajectory", { params: { path, query } })),
    enabled: !!trial.data?.result,
    retry: false,
  });
  const recording = useRecording(id, attempt, !!trial.data?.result);
  useLive(trial.data && trial.data.state !== "ended" ? `/api/v1/trials/${id}/events` : null, (event) => {
    if (event.kind === "trial.output") live.receive(event.data);
    else if (event.kind === "trial.step") setLiveSteps((seen) => (live.step(event.data.data as Record<string, unknown>), seen + 1));
    else void queries.invalidateQueries({ queryKey: ["trial", id] });
  });
  const steps = useMemo(() => (running ? live.steps() : stepsOf(trajectory.data)), [running, live, liveSteps, trajectory.data]);
  const [now, setNow] = useState<number | null>(null);
  const at = filters.step ? Number(filters.step) : null;

  const goTo = useCallback((number: number) => setFilter("step", String(number)), [setFilter]);
  if (trial.error) return <Trouble error={trial.error} retry={() => void trial.refetch()} />;
  if (!trial.data) return <Waiting rows={12} />;
  const chosen = steps.find((step) => step.number === at);
  return (
    <div className="flex flex-col gap-3">
      <Header trial={trial.data} steps={steps.length} attempt={attempt} onAttempt={(number) => setFilter("try", number ? String(number) : undefined)} />
      <PhaseBar trial={trial.data} recordingStart={recording.start} onSeek={setNow} />
      <div className="grid gap-3 lg:grid-cols-[minmax(18rem,26rem)_minmax(0,1fr)]">
        <Panel title={`Steps${steps.length ? ` (${steps.length})` : ""}`} flush minHeight={420}>
          <StepList steps={steps} at={at} running={running} now={recording.start != null && now != null ? recording.start + now * 1000 : null} onChoose={goTo} agent={trial.data.agent} />
        </Panel>
        <Panel title={running ? "Terminal, live" : "Terminal, recorded"} flush minHeight={420}>
          <Screen key={`${id}-${running}-${attempt ?? 0}`} running={running} live={live} recording={recording} seekTo={chosen?.at ?? null} onTime={setNow} />
        </Panel>
      </div>
      <Panel flush>
        <Details trial={trial.data} steps={steps} attempt={attempt} />
      </Panel>
    </div>
  );
}
