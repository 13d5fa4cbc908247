import { useQuery } from "@tanstack/react-query";

import { withAccess } from "@/api/access";
import { ServiceError } from "@/api/problem";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { count, duration, exact, money } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { type Call, callsOf, ending } from "./calls";
import { fileUrl, keyOf, type Try, useFiles } from "./files";
import { type Step, title } from "./steps";

const FILE = "calls.jsonl";
/** Some fifty thousand calls. Of a longer record the end is shown. */
const LARGEST = 16 << 20;

function figures(
  id: string,
  name: string,
  width: string,
  text: (call: Call) => string,
  value: Column<Call>["value"],
  hint?: (call: Call) => string | undefined,
): Column<Call> {
  return { id, name, width, align: "right", cell: (call) => <span title={hint?.(call)}>{text(call)}</span>, value };
}

const COLUMNS: Column<Call>[] = [
  figures(
    "at",
    "Time",
    "6.5rem",
    (call) => (call.at == null ? "–" : new Date(call.at).toLocaleTimeString()),
    (call) => call.at,
    (call) => (call.at == null ? undefined : exact(new Date(call.at).toISOString())),
  ),
  {
    id: "model",
    name: "Model",
    width: "minmax(9rem, 1fr)",
    cell: (call) => <span title={call.model}>{call.model}</span>,
    value: (call) => call.model,
  },
  figures(
    "status",
    "Status",
    "5rem",
    (call) => (call.status == null ? "–" : String(call.status)),
    (call) => call.status,
    (call) => (call.tries ? undefined : "Refused by the gate; nothing was sent"),
  ),
  figures(
    "tries",
    "Requests",
    "5rem",
    (call) => count(call.tries),
    (call) => call.tries,
    () => "Requests to the provider",
  ),
  figures(
    "waited",
    "Waited",
    "5rem",
    (call) => (call.waited ? duration(call.waited) : "–"),
    (call) => call.waited,
    () => "Because the provider limits the pace, or was away",
  ),
  figures("first", "First token", "6rem", (call) => duration(call.first), (call) => call.first),
  figures("seconds", "Seconds", "5.5rem", (call) => duration(call.seconds), (call) => call.seconds),
  figures("in", "Tokens in", "6rem", (call) => count(call.input), (call) => call.input),
  figures("cached", "Cached", "5rem", (call) => count(call.cached), (call) => call.cached, (call) =>
    call.cacheWrite ? `${count(call.cacheWrite)} written to the cache` : "Part of the tokens in",
  ),
  figures("out", "Tokens out", "6rem", (call) => count(call.output), (call) => call.output, (call) =>
    call.clampedTo == null ? undefined : `Limited to ${count(call.clampedTo)} by the budget`,
  ),
  figures("reasoning", "Reasoning", "6rem", (call) => count(call.reasoning), (call) => call.reasoning, () => "Part of the tokens out"),
  figures("cost", "Cost", "5rem", (call) => money(call.cost), (call) => call.cost, (call) =>
    call.costBy ? `By the ${call.costBy === "provider" ? "provider's own figure" : `${call.costBy}'s prices`}` : undefined,
  ),
  {
    id: "end",
    name: "End",
    width: "minmax(7rem, 1fr)",
    cell: (call) => (
      <span title={ending(call)} className={call.error || call.overBudget ? "text-error" : ""}>
        {ending(call)}
      </span>
    ),
    value: ending,
  },
];

const STEP_COLUMNS: Column<Step>[] = [
  { id: "step", name: "Step", width: "4rem", cell: (step) => step.number, value: (step) => step.number },
  {
    id: "what",
    name: "Result",
    width: "minmax(12rem, 1fr)",
    cell: (step) => <span className="font-mono text-xs">{title(step)}</span>,
    value: title,
  },
  {
    id: "in",
    name: "Tokens in",
    width: "7rem",
    align: "right",
    cell: (step) => count(step.inputTokens),
    value: (step) => step.inputTokens,
  },
  {
    id: "out",
    name: "Tokens out",
    width: "7rem",
    align: "right",
    cell: (step) => count(step.outputTokens),
    value: (step) => step.outputTokens,
  },
  {
    id: "cost",
    name: "Cost",
    width: "6rem",
    align: "right",
    cell: (step) => money(step.cost || null),
    value: (step) => step.cost,
  },
];

type Props = { of: Try; ended: boolean; live: Call[]; steps: Step[] };

/** What the gate counted, for every agent alike; what the agent told, for calls that did not pass the gate. */
export function ModelCalls({ of, ended, live, steps }: Props) {
  const files = useFiles(of, ended);
  const file = files.data?.items.find((one) => one.path === FILE);
  const number = files.data?.attempt;
  const kept = useQuery({
    queryKey: keyOf(of, "calls"),
    queryFn: ({ signal }) => readCalls(fileUrl(of.trial, FILE, number!), file!.size, signal),
    enabled: ended && !!file && number != null,
    staleTime: Infinity,
  });
  if (kept.error) return <Trouble error={kept.error} />;
  if (ended && (files.isPending || (file && !kept.data))) return <Waiting />;
  const calls = ended ? (kept.data ?? []) : live;
  if (ended && !file) return <ToldBySteps steps={steps} />;
  return (
    <DataTable
      name="model calls"
      rows={calls}
      columns={COLUMNS}
      rowKey={(call) => call.number}
      height="26rem"
      empty={<Empty>{ended ? "No model calls." : "No model call has ended yet."}</Empty>}
    />
  );
}

function ToldBySteps({ steps }: { steps: Step[] }) {
  return (
    <DataTable
      name="model calls"
      rows={steps.filter((step) => step.inputTokens || step.outputTokens)}
      columns={STEP_COLUMNS}
      rowKey={(step) => step.number}
      height="26rem"
      empty={<Empty>No model calls, or the agent did not report them.</Empty>}
    />
  );
}

async function readCalls(url: string, size: number, signal: AbortSignal): Promise<Call[]> {
  const headers = withAccess(size > LARGEST ? { Range: `bytes=-${LARGEST}` } : {});
  const answer = await fetch(url, { signal, headers });
  if (!answer.ok) {
    const message = `The calls could not be read (${answer.status}).`;
    throw new ServiceError(answer.status, { code: "error", message });
  }
  return callsOf(await answer.text());
}
