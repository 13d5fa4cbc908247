/** Why a trial did not pass: the assertions that failed, the verifier's last lines, what the agent said last, and the task. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { withAccess } from "@/api/access";
import { api, type Schemas, unwrap } from "@/api/client";
import { plural } from "@/parts/format";
import { Panel } from "@/parts/Panel";
import { plainText } from "./ansi";
import { fileUrl, keyOf, type Try, useFiles } from "./files";
import type { Step } from "./steps";

/** The end of the verifier's output that is fetched, and the lines of it that are shown. */
const TAIL_BYTES = 16 << 10;
const TAIL_LINES = 25;
const VERIFIER_OUTPUT = /(^|\/)verifier\/(test-stdout|test_output|output|stdout)\.(txt|log)$/;
/** More failed tests than this are in the tab below, one by one. */
const MOST_TESTS = 10;

export function WhyFailed({ trial, of, steps }: { trial: Schemas["TrialDetail"]; of: Try; steps: Step[] }) {
  const files = useFiles(of, true);
  const output = files.data?.items.find((file) => VERIFIER_OUTPUT.test(file.path));
  const tail = useQuery({
    queryKey: [...keyOf(of, "verifier tail"), output?.path],
    queryFn: async () =>
      lastLines(await readTail(fileUrl(of.trial, output?.path ?? "", files.data?.attempt ?? of.tries), output?.size ?? 0)),
    enabled: !!output?.size,
    staleTime: Infinity,
  });
  const task = useQuery({
    queryKey: ["task", trial.task.digest],
    queryFn: () =>
      unwrap(api.GET("/api/v1/tasks/{digest}", { params: { path: { digest: trial.task.digest } } })),
    staleTime: Infinity,
  });
  const failed = (trial.result?.tests ?? []).filter((test) => test.status === "failed" || test.status === "error");
  const believed = [...steps].reverse().find((step) => step.source === "agent" && (step.message || step.thought));
  return (
    <Panel title="Why it failed" minHeight={220}>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <div className="flex flex-col gap-3">
          {failed.slice(0, MOST_TESTS).map((test, index) => (
            <Quote key={index} title={test.name} name={`What ${test.name} says`}>
              {test.message || "This test failed without a message."}
            </Quote>
          ))}
          {failed.length > MOST_TESTS ? (
            <p className="text-sm text-ink-soft">
              {plural(failed.length - MOST_TESTS, "more failed tests")}: see Tests below.
            </p>
          ) : null}
          {failed.length === 0 ? (
            <p className="text-sm text-ink-soft">The verifier reported no single tests. Its reward decided.</p>
          ) : null}
          {tail.data ? (
            <Quote title="The verifier's last lines" name="The verifier's last lines">
              {tail.data}
            </Quote>
          ) : null}
        </div>
        <div className="flex flex-col gap-3">
          {believed ? (
            <Quote title={`What the agent said last (step ${believed.number})`} name="What the agent said last">
              {believed.message || believed.thought}
            </Quote>
          ) : null}
          {task.data?.instruction ? (
            <Quote
              title={
                <>
                  The task:{" "}
                  <Link to="/tasks/$digest" params={{ digest: trial.task.digest }}>
                    {trial.task.name}
                  </Link>
                </>
              }
              name="The task's instruction"
            >
              {task.data.instruction}
            </Quote>
          ) : null}
        </div>
      </div>
    </Panel>
  );
}

function Quote({ title, name, children }: { title: ReactNode; name: string; children: string }) {
  return (
    <div className="min-w-0">
      <h3 className="mb-1 text-xs font-semibold break-words text-ink-soft">{title}</h3>
      <pre
        className="max-h-72 overflow-auto rounded bg-raised p-2 font-mono text-xs break-words whitespace-pre-wrap"
        tabIndex={0}
        role="region"
        aria-label={name}
      >
        {children}
      </pre>
    </div>
  );
}

async function readTail(url: string, size: number): Promise<string> {
  const answer = await fetch(url, { headers: withAccess(size > TAIL_BYTES ? { Range: `bytes=-${TAIL_BYTES}` } : {}) });
  if (!answer.ok) throw new Error(`The verifier's output could not be read (${answer.status}).`);
  return answer.text();
}

function lastLines(text: string): string {
  return plainText(text).trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
}
