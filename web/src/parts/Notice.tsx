import type { ReactNode } from "react";

import { problemOf } from "@/api/problem";

/** Empty pages teach: one sentence and one button. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-3 px-6 py-14 text-center text-ink-soft">
      <p className="max-w-md text-balance">{children}</p>
      {action}
    </div>
  );
}

/** What happened, what it means, what to do. */
export function Trouble({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = problemOf(error);
  return (
    <div role="alert" className="m-3 rounded-md border border-failed/40 bg-failed-soft px-3 py-2 text-sm">
      <p className="font-semibold text-failed">{problem.message}</p>
      {problem.fix ? <p className="mt-0.5">{problem.fix}</p> : null}
      {problem.problems?.length ? <ProblemList problems={problem.problems} /> : null}
      {retry ? (
        <button type="button" className="mt-1 font-medium text-accent underline" onClick={retry}>
          Try again
        </button>
      ) : null}
    </div>
  );
}

type TaskProblem = { file: string; line?: number | null; message: string; fix?: string; severity?: string };

export function ProblemList({ problems }: { problems: TaskProblem[] }) {
  return (
    <ul className="mt-1 flex flex-col gap-1">
      {problems.map((problem, index) => (
        <li key={index} className="text-sm">
          <code className="font-mono text-xs">
            {problem.file}
            {problem.line ? `:${problem.line}` : ""}
          </code>{" "}
          {problem.severity === "warning" ? <span className="text-error">warning: </span> : null}
          {problem.message} {problem.fix ? <span className="text-ink-soft">{problem.fix}</span> : null}
        </li>
      ))}
    </ul>
  );
}

/** A skeleton that keeps the place of what is coming. */
export function Waiting({ rows = 6 }: { rows?: number }) {
  return (
    <div aria-busy className="flex flex-col gap-2 p-3">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="h-5 rounded bg-raised" />
      ))}
    </div>
  );
}
