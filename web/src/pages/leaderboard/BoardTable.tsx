import type { Schemas } from "@/api/client";
import { CsvButton } from "@/parts/CsvButton";
import type { CsvColumn } from "@/parts/csv";
import { money, percent } from "@/parts/format";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { RowLink } from "@/parts/RowLink";
import { uncertainty } from "@/parts/Score";
import { StateShape } from "@/parts/State";

type Board = Schemas["Board"];
type Entry = Schemas["Entry"];
type JobScore = Schemas["JobScore"];

const HEADINGS = ["#", "Configuration", "Score", "Coverage", "Errors as 0", "Attempts", "Cost / trial", "Eligible", "Job"];
const CELL = "border-b px-3 py-1.5 align-top";

const CSV: CsvColumn<Entry>[] = [
  { name: "Rank", value: (of) => of.rank },
  { name: "Configuration", value: (of) => of.label },
  { name: "Score", value: ({ shown }) => shown.score.value ?? "not scored" },
  { name: "Low", value: ({ shown }) => shown.score.low },
  { name: "High", value: ({ shown }) => shown.score.high },
  { name: "No interval", value: ({ shown }) => shown.score.no_interval },
  { name: "Coverage", value: ({ shown }) => shown.score.coverage },
  { name: "Score with errors as 0", value: ({ shown }) => (shown.score.value == null ? null : shown.score.leaderboard) },
  { name: "Attempts", value: ({ shown }) => shown.attempts },
  { name: "Cost per trial", value: ({ shown }) => shown.cost_per_trial },
  { name: "Eligible", value: ({ shown }) => (shown.eligible ? "yes" : "no") },
  { name: "Why not", value: ({ shown }) => shown.why_not?.join("; ") },
  { name: "Notices", value: ({ shown }) => shown.notices?.join(" ") },
  { name: "Job", value: ({ shown }) => shown.job },
  { name: "Other jobs", value: (of) => of.others?.map((other) => other.job).join(" ") },
];

/** The configurations that ran the same tasks. */
export function BoardTable({ board }: { board: Board }) {
  return (
    <Panel
      title={board.label}
      side={<CsvButton name={`leaderboard ${board.label}`} columns={CSV} rows={board.entries} />}
      flush
    >
      <div className="relative overflow-x-auto" tabIndex={0} role="region" aria-label={`Ranking on ${board.label}`}>
        <table className="w-full min-w-[62rem] text-sm" aria-label={board.label}>
          <thead>
            <tr className="bg-raised text-xs text-ink-soft">
              {HEADINGS.map((name) => (
                <th key={name} scope="col" className="px-3 py-1.5 text-left font-semibold">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {board.entries.map((entry) => (
              <Row key={entry.label} entry={entry} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Row({ entry }: { entry: Entry }) {
  const { shown } = entry;
  const { score } = shown;
  return (
    <tr>
      <td className={CELL}>{entry.rank ?? "–"}</td>
      <th scope="row" className={`${CELL} max-w-80 min-w-44 text-left font-medium [overflow-wrap:anywhere]`} dir="auto">
        <span className="line-clamp-3" title={entry.label.length > 60 ? entry.label.slice(0, 400) : undefined}>
          {entry.label}
        </span>
      </th>
      <td className={`${CELL} whitespace-nowrap`} title={score.no_interval ? `no interval: ${score.no_interval}` : undefined}>
        {score.value == null ? (
          <span className="text-ink-soft">not scored</span>
        ) : (
          <>
            <span className="font-semibold">{percent(score.value)}</span>{" "}
            <span className="text-ink-soft">{uncertainty(score.value, score)}</span>
          </>
        )}
      </td>
      <td className={CELL}>{percent(score.coverage)}</td>
      <td className={CELL}>{score.value == null ? "–" : percent(score.leaderboard)}</td>
      <td className={CELL}>{shown.attempts}</td>
      <td className={CELL}>{money(shown.cost_per_trial)}</td>
      <td className={`${CELL} max-w-96 min-w-56`}>
        <Eligibility of={shown} />
      </td>
      <td className={`${CELL} min-w-48`}>
        <JobLine of={shown} />
        {entry.others?.length ? <Others entry={entry} /> : null}
      </td>
    </tr>
  );
}

function Eligibility({ of }: { of: JobScore }) {
  return (
    <>
      <span className="inline-flex items-center gap-1.5">
        <StateShape of={of.eligible ? "passed" : "cancelled"} size={10} />
        {of.eligible ? "eligible" : "not eligible"}
      </span>
      {of.why_not?.length || of.notices?.length ? (
        <ul className="text-xs [overflow-wrap:anywhere]">
          {of.why_not?.map((why) => (
            <li key={why} className="text-ink-soft">
              {why}
            </li>
          ))}
          {of.notices?.map((notice) => (
            <li key={notice} className="text-error">
              {notice}
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}

function JobLine({ of, score = false }: { of: JobScore; score?: boolean }) {
  return (
    <span className="flex items-baseline gap-1.5 whitespace-nowrap">
      <RowLink to={`/jobs/${of.job}`} className="text-accent" title={of.name}>
        job {of.job}
      </RowLink>
      <span className="text-xs text-ink-soft">
        {score ? (of.score.value == null ? "not scored, " : `${percent(of.score.value)}, `) : null}
        {score && !of.eligible ? "not eligible, " : null}
        <Moment at={of.created_at} />
      </span>
    </span>
  );
}

/** In no number of the row. */
function Others({ entry }: { entry: Entry }) {
  return (
    <details className="text-xs">
      <summary className="cursor-pointer text-ink-soft">{entry.chosen}</summary>
      <ul>
        {entry.others?.map((other) => (
          <li key={other.job}>
            <JobLine of={other} score />
          </li>
        ))}
      </ul>
    </details>
  );
}
