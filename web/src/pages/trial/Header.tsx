import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, type Schemas } from "@/api/client";
import { Button, buttonLook } from "@/parts/Button";
import { count, duration, money, plural } from "@/parts/format";
import { Trouble } from "@/parts/Notice";
import { standing, StateLabel } from "@/parts/State";
import type { Step } from "./steps";

type Props = { trial: Schemas["TrialDetail"]; steps: Step[]; attempt: number | undefined; onAttempt: (number: number | undefined) => void };

export function Header({ trial, steps, attempt, onAttempt }: Props) {
  const queries = useQueryClient();
  const path = { params: { path: { trial_id: trial.id } } };
  const act = useMutation({
    mutationFn: async (what: "retry" | "cancel") => (what === "retry" ? api.POST("/api/v1/trials/{trial_id}/retry", path) : api.POST("/api/v1/trials/{trial_id}/cancel", path)),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["trial", trial.id] }),
  });
  const usage = trial.result?.usage;
  const tokens = usage ? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) : steps.reduce((sum, step) => sum + step.inputTokens + step.outputTokens, 0);
  const cost = usage ? usage.cost_usd : steps.reduce((sum, step) => sum + step.cost, 0) || null;
  const note = trial.outcome === "error" ? (trial.cause ?? undefined) : trial.reward != null ? `reward ${trial.reward}` : (trial.phase?.replaceAll("_", " ") ?? undefined);
  return (
    <header className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-start gap-x-4 gap-y-2">
        <div className="flex min-h-7 min-w-0 flex-1 basis-80 flex-wrap items-center gap-x-4 gap-y-1">
        <h1 className="min-w-0 break-words">
          <Link to="/jobs/$job" params={{ job: String(trial.job_id) }} className="font-normal text-ink-soft no-underline hover:underline">job {trial.job_id}</Link>
          {" / "}{trial.task.name} <span className="font-normal text-ink-soft">· {trial.model ? `${trial.model} / ` : ""}{trial.agent} · attempt {trial.repeat}</span>
        </h1>
        <StateLabel of={standing(trial)} note={note} />
        <span className="text-sm whitespace-nowrap text-ink-soft">
          {[trial.result ? duration(trial.result.seconds) : null, steps.length ? plural(steps.length, "steps") : null, tokens ? `${count(tokens)} tokens` : null, cost != null ? money(cost) : null].filter(Boolean).join(" · ")}
        </span>
        </div>
        <div className="flex flex-wrap items-center gap-2">
        {trial.attempts.length > 1 ? (
          <label className="text-sm text-ink-soft">Try{" "}
            <select className="h-7 rounded-md border border-line-strong bg-panel px-1 text-ink" value={attempt ?? ""} onChange={(event) => onAttempt(event.target.value ? Number(event.target.value) : undefined)}>
              <option value="">the last one</option>
              {trial.attempts.map((one) => <option key={one.number} value={one.number}>{one.number}: {one.outcome ?? "running"}{one.cause ? `, ${one.cause}` : ""}</option>)}
            </select>
          </label>
        ) : null}
        {trial.state === "ended" ? <Button disabled={act.isPending} onClick={() => act.mutate("retry")}>Run again</Button> : <Button kind="danger" disabled={act.isPending || trial.cancel_requested} onClick={() => act.mutate("cancel")}>Cancel</Button>}
        <Link to="/compare" search={{ left: String(trial.id), task: trial.task.name } as never} className={buttonLook()}>Compare …</Link>
        </div>
      </div>
      {trial.result?.message && trial.outcome !== "passed" ? <p className={`text-sm ${trial.outcome === "error" ? "text-error" : "text-ink-soft"}`}>{trial.outcome === "error" ? "Not your agent's fault: " : ""}{trial.result.message}</p> : null}
      {act.error ? <Trouble error={act.error} /> : null}
    </header>
  );
}
