/** Failed trials, grouped by what decided them: failed tests, error line, limit or cause. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, type Schemas, unwrap } from "@/api/client";
import { count } from "@/parts/format";
import { Trouble, Waiting } from "@/parts/Notice";

type Group = Schemas["FailureGroup"];

/** More links than these would slow the page down. */
const MOST_LINKS = 500;

export function Failures({ job }: { job: number }) {
  const failures = useQuery({
    queryKey: ["job", job, "failures"],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/{job_id}/failures", { params: { path: { job_id: job } } })),
  });
  if (failures.error) return <Trouble error={failures.error} retry={() => void failures.refetch()} />;
  if (!failures.data) return <Waiting rows={6} />;
  const { groups = [], not_shown: notShown } = failures.data;
  if (!groups.length) return <p className="p-3 text-sm text-ink-soft">No trial failed or ended in an error.</p>;
  return (
    <ol aria-label="Groups of failed trials" className="divide-y">
      {groups.map((group) => (
        <li key={group.example.trial} className="flex flex-col gap-1.5 p-3">
          <One group={group} />
        </li>
      ))}
      {notShown ? <li className="p-3 text-sm text-ink-soft">and {count(notShown)} more in smaller groups</li> : null}
    </ol>
  );
}

function One({ group }: { group: Group }) {
  const { example, trials, configurations } = group;
  const error = group.outcome === "error";
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className={`font-semibold ${error ? "text-error" : "text-failed"}`}>
          {error ? "▲" : "✕"} {count(group.count)} ×
        </span>
        <span className="font-medium">{group.title}</span>
        <span className="text-sm text-ink-soft">
          {count(group.tasks)} {group.tasks === 1 ? "task" : "tasks"} ·{" "}
          {Object.entries(configurations)
            .map(([label, number]) => `${label} ${number}`)
            .join(" · ")}
        </span>
      </p>
      {(group.tests?.length ?? 0) > 1 ? <p className="text-sm break-words text-ink-soft">{group.tests?.join(", ")}</p> : null}
      {example.message ? (
        <pre
          tabIndex={0}
          aria-label="Example of the error"
          className="max-h-40 overflow-auto rounded bg-raised p-2 text-xs whitespace-pre-wrap break-words"
        >
          {example.message}
        </pre>
      ) : null}
      {group.commands?.length ? (
        <p className="text-sm break-words">
          <span className="text-ink-soft">last command </span>
          <code className="text-xs">{group.commands[0]}</code>
        </p>
      ) : null}
      <p className="text-sm">
        <span className="text-ink-soft">for example </span>
        <TrialLink id={example.trial} /> ({example.task}, attempt {example.attempt})
      </p>
      <details className="text-sm">
        <summary className="cursor-pointer">
          all {count(trials.length)} {trials.length === 1 ? "trial" : "trials"}
        </summary>
        <p className="flex flex-wrap gap-x-3 gap-y-1 pt-1.5">
          {trials.slice(0, MOST_LINKS).map((id) => (
            <TrialLink key={id} id={id} />
          ))}
          {trials.length > MOST_LINKS ? <span>and {count(trials.length - MOST_LINKS)} more</span> : null}
        </p>
      </details>
    </>
  );
}

function TrialLink({ id }: { id: number }) {
  return (
    <Link to="/trials/$trial" params={{ trial: String(id) }}>
      #{id}
    </Link>
  );
}
