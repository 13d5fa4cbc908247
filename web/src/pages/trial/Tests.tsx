import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { duration } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { type Standing, StateLabel } from "@/parts/State";

const SHAPES: Record<string, Standing> = { passed: "passed", failed: "failed", error: "error", skipped: "cancelled" };

/** The verifier's tests one by one, with what they said, and which of them flipped since the try before. */
export function Tests({ trial, attempt }: { trial: Schemas["TrialDetail"]; attempt: number | undefined }) {
  const [open, setOpen] = useState<string>();
  const shown = attempt ?? trial.attempts.filter((one) => one.outcome).at(-1)?.number;
  const earlier = trial.attempts.filter((one) => one.outcome && shown != null && one.number < shown).at(-1)?.number;
  const tests = useTests(trial.id, shown);
  const before = useTests(trial.id, earlier);
  if (!trial.result) return <Empty>Tests run when the agent is done.</Empty>;
  if (tests.error) return <Trouble error={tests.error} />;
  if (!tests.data) return <Waiting />;
  if (!tests.data.items.length) return <Empty>The verifier told no single tests; its reward decides: {JSON.stringify(trial.result.rewards)}.</Empty>;
  const was = new Map(before.data?.items.map((test) => [test.name, test.status]));
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead><tr className="text-left text-xs text-ink-soft"><th className="px-3 py-1.5 font-medium">Test</th><th className="px-3 font-medium">Result</th><th className="px-3 text-right font-medium">Time</th></tr></thead>
        <tbody>
          {tests.data.items.map((test) => {
            const flipped = was.has(test.name) && was.get(test.name) !== test.status;
            return (
              <tr key={test.name} className="border-t align-top">
                <td className="px-3 py-1">
                  {test.message ? <button type="button" aria-expanded={open === test.name} className="text-left font-mono text-xs hover:underline" onClick={() => setOpen(open === test.name ? undefined : test.name)}>{open === test.name ? "▾" : "▸"} {test.name}</button> : <span className="font-mono text-xs">{test.name}</span>}
                  {open === test.name ? <pre className="mt-1 max-h-80 overflow-auto rounded bg-raised p-2 font-mono text-xs whitespace-pre-wrap" tabIndex={0}>{test.message}</pre> : null}
                </td>
                <td className="px-3 py-1 whitespace-nowrap"><StateLabel of={SHAPES[test.status] ?? "error"} note={flipped ? `was ${was.get(test.name)}` : test.status === "skipped" ? "skipped" : undefined} /></td>
                <td className="px-3 py-1 text-right whitespace-nowrap">{duration(test.seconds)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function useTests(trial: number, attempt: number | undefined) {
  return useQuery({
    queryKey: ["trial", trial, "tests", attempt],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}/tests", { params: { path: { trial_id: trial }, query: { attempt } as never } })),
    enabled: attempt != null,
  });
}
