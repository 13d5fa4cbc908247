import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button, buttonLook } from "@/parts/Button";
import { ConfirmButton } from "@/parts/ConfirmButton";
import { FIELD } from "@/parts/field";
import { count, duration, money, plural } from "@/parts/format";
import { Trouble } from "@/parts/Notice";
import { ShareButton } from "@/parts/ShareButton";
import { StateLabel, statusOf } from "@/parts/State";
import type { Step } from "./steps";

type Props = {
  trial: Schemas["TrialDetail"];
  steps: Step[];
  tryNumber: number | undefined;
  onTry: (number: number | undefined) => void;
};

export function Header({ trial, steps, tryNumber, onTry }: Props) {
  const path = { params: { path: { trial_id: trial.id } } };
  const { busy, error, act } = useAct(["trial", trial.id]);
  // While it runs again, what came of the try before would be taken for this one's.
  const result = trial.state === "ended" ? trial.result : null;
  const usage = result?.usage;
  const tokens = usage
    ? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)
    : steps.reduce((sum, step) => sum + step.inputTokens + step.outputTokens, 0);
  const cost = usage ? usage.cost_usd : steps.reduce((sum, step) => sum + step.cost, 0) || null;
  const graded = trial.outcome === "passed" || trial.outcome === "failed";
  const [added, setAdded] = useState<number>();
  const addAttempt = async () => {
    const { trials } = await unwrap(api.POST("/api/v1/trials/{trial_id}/attempts", path));
    setAdded(trials[0]);
  };
  const note =
    trial.outcome === "error"
      ? (trial.cause ?? undefined)
      : result && trial.reward != null
        ? `reward ${trial.reward}`
        : (trial.phase?.replaceAll("_", " ") ?? undefined);
  return (
    <header className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-start gap-x-4 gap-y-2">
        <div className="flex min-h-7 min-w-0 flex-1 basis-80 flex-wrap items-center gap-x-4 gap-y-1">
          <h1 className="min-w-0 break-words">
            <Link
              to="/jobs/$job"
              params={{ job: String(trial.job_id) }}
              className="font-normal text-ink-soft no-underline hover:underline"
            >
              job {trial.job_id}
            </Link>
            {" / "}
            {trial.task.name}{" "}
            <span className="font-normal text-ink-soft">
              · {trial.model ? `${trial.model} / ` : ""}
              {trial.agent} · attempt {trial.repeat}
            </span>
          </h1>
          <StateLabel of={statusOf(trial)} note={note} />
          <span className="min-h-5 basis-full text-sm text-ink-soft sm:basis-auto sm:whitespace-nowrap">
            {[
              result ? duration(result.seconds) : null,
              steps.length ? plural(steps.length, "steps") : null,
              tokens ? `${count(tokens)} tokens` : null,
              cost != null ? money(cost) : null,
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
        </div>
        <div className="flex flex-wrap items-center gap-2">
          {trial.attempts.length > 1 ? (
            <label className="inline-flex items-center gap-1.5 text-sm text-ink-soft">
              Try
              <select
                aria-label="Try"
                className={FIELD}
                value={tryNumber ?? ""}
                onChange={(event) => onTry(event.target.value ? Number(event.target.value) : undefined)}
              >
                <option value="">the last one</option>
                {trial.attempts.map((one) => (
                  <option key={one.number} value={one.number}>
                    {one.number}: {one.outcome ?? "running"}
                    {one.cause ? `, ${one.cause}` : ""}
                  </option>
                ))}
              </select>
            </label>
          ) : null}
          {graded ? (
            <Button
              disabled={busy}
              title="Runs the task once more, outside of the planned attempts. This result stays as it is."
              onClick={() => void act(addAttempt)}
            >
              New attempt
            </Button>
          ) : trial.state === "ended" ? (
            <Button disabled={busy} onClick={() => void act(() => api.POST("/api/v1/trials/{trial_id}/retry", path))}>
              Retry
            </Button>
          ) : (
            <ConfirmButton
              kind="danger"
              disabled={busy || trial.cancel_requested}
              question={`Cancel trial ${trial.id}? It stops, and what it did so far is lost.`}
              verb="Cancel the trial"
              onConfirm={() => void act(() => api.POST("/api/v1/trials/{trial_id}/cancel", path))}
            >
              {trial.cancel_requested ? "Stopping …" : "Cancel"}
            </ConfirmButton>
          )}
          <Link
            to="/compare"
            search={{ left: String(trial.id), task: trial.task.name } as never}
            className={buttonLook()}
          >
            Compare …
          </Link>
          <ShareButton job={trial.job_id} trial={trial.id} />
          <a
            className={buttonLook("quiet")}
            href={`/api/v1/trials/${trial.id}/static.zip`}
            download
            title="A page that opens from disk, without a network"
          >
            Export
          </a>
        </div>
      </div>
      <AttemptNotes trial={trial} added={added} />
      {result?.message && trial.outcome !== "passed" ? (
        <p className={`text-sm ${trial.outcome === "error" ? "text-error" : "text-ink-soft"}`}>
          {trial.outcome === "error" ? "Error: " : ""}
          {result.message}
        </p>
      ) : null}
      {error ? <Trouble error={error} /> : null}
    </header>
  );
}

/** Whether it counts, what all of its tries used, and which attempt was added just now. */
function AttemptNotes({ trial, added }: { trial: Schemas["TrialDetail"]; added: number | undefined }) {
  const { spent, reruns } = trial;
  const tokens = (spent.input_tokens ?? 0) + (spent.output_tokens ?? 0);
  return (
    <>
      {reruns == null ? null : (
        <p className="text-sm text-ink-soft">
          A new attempt after the planned ones; not part of the score. It reruns <TrialLink id={reruns} />.
        </p>
      )}
      {trial.attempts.length > 1 ? (
        <p className="text-sm text-ink-soft">
          {[
            `All ${trial.attempts.length} tries together: ${duration(spent.seconds)}`,
            tokens ? `${count(tokens)} tokens` : null,
            spent.cost_usd != null ? money(spent.cost_usd) : null,
          ]
            .filter(Boolean)
            .join(" · ")}
        </p>
      ) : null}
      <p role="status" className={added == null ? "sr-only" : "text-sm text-ink-soft"}>
        {added == null ? null : (
          <>
            Queued as <TrialLink id={added} />, shown apart from the planned attempts.
          </>
        )}
      </p>
    </>
  );
}

function TrialLink({ id }: { id: number }) {
  return (
    <Link to="/trials/$trial" params={{ trial: String(id) }}>
      trial {id}
    </Link>
  );
}
