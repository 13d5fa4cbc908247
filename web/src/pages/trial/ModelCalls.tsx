import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { count, money } from "@/parts/format";
import { Empty } from "@/parts/Notice";
import { type Step, title } from "./steps";

const COLUMNS: Column<Step>[] = [
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

export function ModelCalls({ steps }: { steps: Step[] }) {
  const calls = steps.filter((step) => step.inputTokens || step.outputTokens);
  return (
    <DataTable
      name="model calls"
      rows={calls}
      columns={COLUMNS}
      rowKey={(step) => step.number}
      height="26rem"
      empty={<Empty>No model calls, or the agent did not report them.</Empty>}
    />
  );
}
