import type { Schemas } from "@/api/client";
import { Empty } from "@/parts/Notice";

const MEANINGS: Record<string, string> = {
  agent_timeout: "The agent ran out of time; its work until then was graded.",
  agent_error: "The agent crashed; its work until then was graded.",
  over_budget: "A call was refused or cut, because a budget was used up; the agent's work until then was graded.",
  memory_kill: "A process was killed because the sandbox ran out of memory.",
  throttled: "Its model calls waited for their turn, because the provider limits the pace.",
  key_in_sandbox: "A provider key was in its sandbox, which the gate for model calls does not reach.",
  replayed: "Its model calls were answered from the record of another trial.",
  limits_not_enforced: "This machine could not enforce the sandbox's limits.",
  privileged: "The task ran with elevated privileges that the operator allowed.",
  suspect_path: "Programs on the verifier's PATH were changed by the agent. Check the result before you trust it.",
  suspect_python: "Python start-up files were changed by the agent. Check the result before you trust it.",
  suspect_shell: "Shell start-up files were changed by the agent. Check the result before you trust it.",
};

/** What slowed the try down that is not its own work. Nothing if nothing was measured, or nothing happened. */
function heldUp(suffered: Schemas["Suffered"] | undefined): string[] {
  if (!suffered) return [];
  const seconds = (name: string, value: number | null | undefined) =>
    value ? [`${name} for ${value.toFixed(1)} s`] : [];
  return [
    ...seconds("stopped by the processor limit", suffered.throttled_sec),
    ...(suffered.memory_pressure ? [`reached its memory limit ${suffered.memory_pressure} times`] : []),
    ...seconds("waited for the model", suffered.model_wait_sec),
    ...seconds("waited for a turn at the provider", suffered.pace_wait_sec),
  ];
}

/** How many calls the record of the replayed trial answered. */
function answered(replay: Schemas["Replayed"]): string {
  const saved = replay.saved_usd ? ` They would have cost $${replay.saved_usd.toFixed(4)}.` : "";
  return `Trial ${replay.trial} answered ${replay.hits}, and ${replay.misses} were not in its record.${saved}`;
}

/** Marks stand beside a reward and change nothing about it. */
export function Flags({ result }: { result: Schemas["TrialDetail"]["result"] }) {
  const marks = result?.marks ?? [];
  const failure = result?.failure;
  const waited = result?.suffered?.pace_wait_sec;
  const replay = result?.replay;
  const held = heldUp(result?.suffered);
  if (!marks.length && !failure && !held.length) return <Empty>No flags.</Empty>;
  return (
    <div className="flex flex-col gap-3 p-3 text-sm">
      <ul className="flex flex-col gap-1">
        {marks.map((mark) => (
          <li key={mark}>
            <span className="font-semibold text-error">{mark.replaceAll("_", " ")}</span>: {MEANINGS[mark] ?? ""}
            {mark === "throttled" && waited ? ` ${Math.round(waited)} s in all.` : ""}
            {mark === "replayed" && replay ? ` ${answered(replay)}` : ""}
          </li>
        ))}
      </ul>
      {held.length ? (
        <p aria-label="What held it up" className="text-ink-soft">
          {held.join(", ")}.
        </p>
      ) : null}
      {failure ? (
        <div>
          <h2>{failure.type}</h2>
          <p>{failure.message}</p>
          {failure.traceback ? (
            <pre className="mt-1 max-h-96 overflow-auto rounded bg-raised p-2 font-mono text-xs" tabIndex={0}>
              {failure.traceback}
            </pre>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}
