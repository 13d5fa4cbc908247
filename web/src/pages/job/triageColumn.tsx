import type { Schemas } from "@/api/client";
import type { Column } from "@/parts/column";
import { plural } from "@/parts/format";

type Trial = Schemas["TrialItem"];

/** Tags, labels, the reviewed mark and the number of notes of each trial. */
export function triageColumn(items: Schemas["TriageLine"][]): Column<Trial> {
  const lines = new Map(items.map((line) => [line.trial_id, textOf(line)]));
  return {
    id: "triage",
    name: "Triage",
    width: "minmax(8rem, 1fr)",
    cell: (trial) => <span title={lines.get(trial.id)}>{lines.get(trial.id) ?? ""}</span>,
    value: (trial) => lines.get(trial.id),
  };
}

function textOf({ tags = [], labels = {}, reviewed, notes = 0 }: Schemas["TriageLine"]): string {
  return [
    reviewed ? "✓ reviewed" : "",
    ...tags,
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
    notes ? plural(notes, "notes") : "",
  ]
    .filter(Boolean)
    .join(", ");
}
