/** One trial on one timeline. Steps and terminal move together; everything else is one tab away. */

import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";

import { api, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { useInvalidation } from "@/api/refresh";
import { useFilters } from "@/parts/Filters";
import { Trouble, Waiting } from "@/parts/Notice";
import { useNow } from "@/parts/clock";
import { Panel } from "@/parts/Panel";
import { useTitle } from "@/parts/title";
import { Details } from "./Details";
import { keyOf, useFiles } from "./files";
import { Header } from "./Header";
import { liveTerminal } from "./liveTerminal";
import { Neighbours } from "./Neighbours";
import { beginning, useRecording } from "./recording";
import { phasesUntil, recordedPhases } from "./phases";
import { Screen } from "./Screen";
import { Spend } from "./Spend";
import { StepList } from "./StepList";
import { stepsOf } from "./steps";
import { Timeline } from "./Timeline";
import { Transcript } from "./Transcript";
import { TriagePanel } from "./TriagePanel";
import { WhyFailed } from "./WhyFailed";

const HEARD = new Set(["trial.step", "trial.phase", "trial.calls"]);
/** What changes nothing about the trial itself. */
const QUIET = new Set(["trial.output", "trial.step", "trial.calls"]);
/** The room that the transcript takes, before and after it has come. */
const TRANSCRIPT_PX = 592;

export default function Trial() {
  const id = Number(useParams({ strict: false }).trial);
  const [filters, setFilter] = useFilters();
  const tryNumber = filters.try ? Number(filters.try) : undefined;
  const path = { trial_id: id };
  const trial = useQuery({
    queryKey: ["trial", id],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}", { params: { path } })),
  });
  const state = trial.data?.state ?? "queued";
  const running = state === "running" && tryNumber == null;
  const ended = state === "ended" || tryNumber != null;

  const live = useMemo(() => liveTerminal(), [id]);
  const [, setHeard] = useState(0);
  const refresh = useInvalidation(["trial", id]);
  useLive(trial.data && state !== "ended" ? `/api/v1/trials/${id}/events` : null, (event) => {
    live.receive(event);
    if (HEARD.has(event.kind)) setHeard((times) => times + 1);
    // Calls come at most once a second. What is left of the caps is the service's to tell: others spend it as well.
    const capped = event.kind === "trial.calls" && !!trial.data?.budgets?.length;
    if (capped || !QUIET.has(event.kind)) refresh();
  });

  const of = { trial: id, tryNumber, tries: trial.data?.attempt ?? 0 };
  const files = useFiles(of, ended && !!trial.data);
  const left = (ending: string) => !!files.data?.items.some((file) => file.path.endsWith(ending));
  const names = useMemo(() => files.data?.items.map((file) => file.path) ?? [], [files.data]);
  const recording = useRecording(of, left(".cast"));
  const trajectory = useQuery({
    queryKey: keyOf(of, "trajectory"),
    queryFn: () =>
      unwrap(api.GET("/api/v1/trials/{trial_id}/trajectory", { params: { path, query: { attempt: tryNumber } as never } })),
    enabled: left("trajectory.json"),
  });
  const kept = useMemo(() => stepsOf(trajectory.data), [trajectory.data]);
  const steps = running ? live.steps() : kept;
  const clock = useNow(running ? 1000 : null);
  const recorded = useMemo(
    () => recordedPhases(ended ? (trial.data?.result?.timings ?? []) : []),
    [ended, trial.data?.result],
  );

  /** A moment of the clock that somebody pointed at; a new object each time, so that the same one can be gone to twice. */
  const [goal, setGoal] = useState<{ moment: number } | null>(null);
  const [now, setNow] = useState<number | null>(null);
  const at = filters.step ? Number(filters.step) : null;
  const chosenAt = steps.find((step) => step.number === at)?.at ?? null;
  useEffect(() => {
    if (chosenAt != null) setGoal({ moment: chosenAt });
  }, [chosenAt, at]);
  const start = useMemo(() => beginning(recording, kept), [recording, kept]);
  const played = useCallback((second: number) => setNow(start == null ? null : start + second * 1000), [start]);
  const goTo = useCallback((moment: number) => {
    setGoal({ moment });
    setNow(moment);
  }, []);
  const target = useMemo(
    () => (goal && start != null ? { second: Math.max(0, (goal.moment - start) / 1000) } : null),
    [goal, start],
  );

  // What left neither steps nor a recording, as the oracle does, needs no room for them; known before anything is drawn.
  const bare =
    state === "ended" &&
    tryNumber == null &&
    !trial.data?.result?.files?.some((file) => /(\.cast|trajectory\.json)$/.test(file.path));
  const room = bare ? undefined : 498;

  useTitle(trial.data?.task.name, `trial ${id}`);
  if (trial.error) return <Trouble error={trial.error} retry={() => void trial.refetch()} />;
  if (!trial.data) return <Waiting rows={12} />;
  return (
    <div className="flex flex-col gap-3">
      <Neighbours trial={id} />
      <Header
        key={id}
        trial={trial.data}
        steps={steps}
        tryNumber={tryNumber}
        onTry={(number) => setFilter("try", number ? String(number) : undefined)}
      />
      {running && trial.data.model ? <Spend sums={live.sums()} caps={trial.data.budgets ?? []} /> : null}
      <TriagePanel key={`triage ${id}`} trial={id} />
      {trial.data.outcome === "failed" && state === "ended" && tryNumber == null ? (
        <WhyFailed trial={trial.data} of={of} steps={kept} />
      ) : null}
      <Timeline
        trial={trial.data}
        phases={running ? phasesUntil(live.phases(), clock) : recorded}
        steps={steps}
        now={now}
        onSeek={goTo}
      />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-3 lg:grid-cols-[minmax(18rem,26rem)_minmax(0,1fr)]">
        <Panel title={`Steps${steps.length ? ` (${steps.length})` : ""}`} flush minHeight={room}>
          <StepList
            steps={steps}
            at={at}
            running={running}
            now={now}
            onChoose={(number) => setFilter("step", number === at ? undefined : String(number))}
            agent={trial.data.agent}
            pending={ended && (files.isPending || (left("trajectory.json") && trajectory.isPending))}
          />
        </Panel>
        <Panel title={running ? "Terminal, live" : "Terminal, recorded"} flush minHeight={room}>
          <Screen
            key={`${id}-${running}-${tryNumber ?? 0}`}
            state={tryNumber == null ? state : "ended"}
            live={live}
            recording={files.isPending ? { ...recording, pending: true } : recording}
            goal={target}
            onTime={played}
          />
        </Panel>
      </div>
      {bare ? null : (
        <Panel title="Transcript" flush minHeight={TRANSCRIPT_PX}>
          <Transcript
            key={`${id}-${tryNumber ?? 0}-${filters.find ?? ""}`}
            steps={steps}
            of={of}
            files={names}
            find={filters.tab ? "" : (filters.find ?? "")}
            pending={ended && (files.isPending || (left("trajectory.json") && trajectory.isPending))}
          />
        </Panel>
      )}
      <Panel flush>
        <Details trial={trial.data} steps={steps} calls={live.calls()} of={of} ended={ended} />
      </Panel>
    </div>
  );
}
