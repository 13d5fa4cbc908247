import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { CsvButton } from "@/parts/CsvButton";
import type { CsvColumn } from "@/parts/csv";
import { duration, plural } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { StateLabel, type TrialStatus } from "@/parts/State";

type Test = Schemas["TestResult"];

const SHAPES: Record<string, TrialStatus> = {
  passed: "passed",
  failed: "failed",
  error: "error",
  skipped: "cancelled",
};
const COLUMNS: CsvColumn<Test>[] = [
  { name: "Test", value: (test) => test.name },
  { name: "Result", value: (test) => test.status },
  { name: "Seconds", value: (test) => test.seconds },
  { name: "Output", value: (test) => test.message },
];

/** The verifier's tests one by one, with what they said, and which of them flipped since the try before. */
export function Tests({ trial, tryNumber }: { trial: Schemas["TrialDetail"]; tryNumber: number | undefined }) {
  const shown = tryNumber ?? trial.attempts.filter((one) => one.outcome).at(-1)?.number;
  const earlier = trial.attempts.filter((one) => one.outcome && shown != null && one.number < shown).at(-1)?.number;
  const tests = useTests(trial.id, shown);
  const before = useTests(trial.id, earlier);
  if (shown == null) return <Empty>Tests run after the agent has ended.</Empty>;
  if (tests.error) return <Trouble error={tests.error} />;
  if (!tests.data) return <Waiting />;
  if (!tests.data.items.length) return <Empty>{rewards(trial)}</Empty>;
  const was = new Map(before.data?.items.map((test) => [test.name, test.status]));
  return (
    <div>
      <div className="flex min-h-9 items-center justify-between border-b px-3 py-1 text-sm text-ink-soft">
        <span>{plural(tests.data.items.length, "tests")}</span>
        <CsvButton name="tests" columns={COLUMNS} rows={tests.data.items} />
      </div>
      <div className="max-h-[34rem] overflow-auto" tabIndex={0} role="region" aria-label="Tests">
        <table className="w-full text-sm">
          <thead className="sticky top-0 bg-raised">
            <tr className="text-left text-xs text-ink-soft">
              <th className="px-3 py-1.5 font-medium">Test</th>
              <th className="px-3 font-medium">Result</th>
              <th className="px-3 text-right font-medium">Time</th>
            </tr>
          </thead>
          <tbody>
            {tests.data.items.map((test, index) => (
              <Line key={`${index} ${test.name}`} test={test} was={was.get(test.name)} />
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Line({ test, was }: { test: Test; was: string | undefined }) {
  const [open, setOpen] = useState(test.status === "failed");
  const note =
    was !== undefined && was !== test.status ? `was ${was}` : test.status === "skipped" ? "skipped" : undefined;
  return (
    <tr className="border-t align-top">
      <td className="min-w-48 px-3 py-1 break-words">
        {test.message ? (
          <button
            type="button"
            aria-expanded={open}
            className="text-left font-mono text-xs hover:underline"
            onClick={() => setOpen(!open)}
          >
            {open ? "▾" : "▸"} {test.name}
          </button>
        ) : (
          <span className="font-mono text-xs">{test.name}</span>
        )}
        {open && test.message ? (
          <pre
            className="mt-1 max-h-80 overflow-auto rounded bg-raised p-2 font-mono text-xs break-words whitespace-pre-wrap"
            tabIndex={0}
          >
            {test.message}
          </pre>
        ) : null}
      </td>
      <td className="px-3 py-1 whitespace-nowrap">
        <StateLabel of={SHAPES[test.status] ?? "error"} note={note} />
      </td>
      <td className="px-3 py-1 text-right whitespace-nowrap">{duration(test.seconds)}</td>
    </tr>
  );
}

function rewards(trial: Schemas["TrialDetail"]): string {
  const found = Object.entries(trial.result?.rewards ?? {}).map(([name, value]) => `${name} ${String(value)}`);
  return found.length
    ? `The verifier reported no single tests; its rewards decide: ${found.join(", ")}.`
    : "The verifier did not run, or reported no tests.";
}

function useTests(trial: number, tryNumber: number | undefined) {
  return useQuery({
    queryKey: ["trial", trial, "tests", tryNumber],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/trials/{trial_id}/tests", {
          params: { path: { trial_id: trial }, query: { attempt: tryNumber } as never },
        }),
      ),
    enabled: tryNumber != null,
  });
}
