import type { Schemas } from "@/api/client";
import { percent } from "@/parts/format";
import { Panel } from "@/parts/Panel";
import { RowLink } from "@/parts/RowLink";
import { StateShape } from "@/parts/State";

type Board = Schemas["Board"];

/** Configurations × boards: each cell is the score of the job that stands for it. There is no mean over boards. */
export function Overview({ boards }: { boards: Board[] }) {
  const labels = [...new Set(boards.flatMap((board) => board.entries.map((entry) => entry.label)))].sort();
  const cells = boards.map((board) => new Map(board.entries.map((entry) => [entry.label, entry])));
  return (
    <Panel title="Configurations × datasets" flush>
      <div className="relative max-h-96 overflow-auto" tabIndex={0} role="region" aria-label="Configurations by dataset">
        <table className="text-sm" aria-label="configurations by dataset">
          <thead>
            <tr className="bg-raised text-xs text-ink-soft">
              <th scope="col" className="px-3 py-1.5 text-left font-semibold">
                Configuration
              </th>
              {boards.map((board) => (
                <th key={board.label} scope="col" className="max-w-48 px-3 py-1.5 text-left font-semibold" dir="auto">
                  <span className="block truncate" title={board.label}>
                    {board.label}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {labels.map((label) => (
              <tr key={label}>
                <th scope="row" className="max-w-80 border-b px-3 py-1 text-left font-medium" dir="auto">
                  <span className="block truncate" title={label}>
                    {label}
                  </span>
                </th>
                {cells.map((of, column) => (
                  <td key={column} className="border-b px-3 py-1 whitespace-nowrap">
                    <Cell entry={of.get(label)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Cell({ entry }: { entry: Schemas["Entry"] | undefined }) {
  if (!entry) return <span className="text-ink-faint">–</span>;
  const { shown } = entry;
  const told = shown.eligible ? "eligible" : "not eligible";
  return (
    <RowLink to={`/jobs/${shown.job}`} className="inline-flex items-center gap-1.5" title={`job ${shown.job}, ${told}`}>
      <StateShape of={shown.eligible ? "passed" : "cancelled"} size={9} />
      <span className="sr-only">{told}</span>
      {shown.score.value == null ? "not scored" : percent(shown.score.value)}
    </RowLink>
  );
}
