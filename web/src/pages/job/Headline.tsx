import type { Schemas } from "@/api/client";
import { CapFigures } from "@/parts/CapFigures";
import { useNow } from "@/parts/clock";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { count, duration, money, percent } from "@/parts/format";
import { elapsed } from "@/parts/Moment";
import { Waiting } from "@/parts/Notice";
import { Figure, Figures } from "@/parts/Panel";
import { endedOf } from "@/parts/Progress";
import { LargeScore, uncertainty } from "@/parts/Score";

type Configuration = Schemas["ConfigurationReport"];

/** More configurations than this are in the table only. */
const AT_TOP = 6;

/** The numbers of the job: one score for each configuration, the best first, and what all of them took. */
export function Headline({ job, report }: { job: Schemas["JobDetail"]; report: Schemas["JobReport"] | undefined }) {
  const seconds = elapsed(job.started_at, job.ended_at, useNow(job.ended_at ? null : 1000));
  const { ended, per_second: pace } = job.progress;
  const scores = job.scores ?? [];
  const spent = spentOf(job);
  return (
    <section aria-label="Result" className="rounded-lg border bg-panel">
      <div className="flex flex-col gap-3 p-3">
        <div className="flex flex-wrap gap-x-10 gap-y-3">
          {scores.slice(0, AT_TOP).map((line) => (
            <LargeScore key={line.label} of={line} named={scores.length > 1} />
          ))}
          {scores.length > AT_TOP ? (
            <p className="self-end text-xs text-ink-soft">and {scores.length - AT_TOP} more in the table</p>
          ) : null}
        </div>
        <Figures end>
          <Figure name="passed" value={`${count(job.counts.passed)} of ${count(ended)}`} hint="Of the trials that ended" />
          <Figure
            name="cost"
            value={money(spent.dollars ?? job.totals.cost_usd)}
            hint="Of model calls, over all tries; those of running trials included"
          />
          <Figure name="tokens" value={count(spent.tokens)} hint="Input and output, over all tries" />
          {spent.calls ? <Figure name="model calls" value={count(spent.calls)} hint="Over all tries" /> : null}
          <CapFigures caps={job.budgets ?? []} />
          <Figure name="time" value={duration(seconds)} />
          {job.ended_at ? null : (
            <>
              <Figure
                name="pace"
                value={pace ? `${pace.toFixed(pace < 1 ? 2 : 1)} trials/s` : "–"}
                hint="Trials that ended in the last five minutes, per second"
              />
              <Figure
                name="in flight"
                value={`${count(job.counts.queued)} queued · ${count(job.counts.running)} running`}
              />
            </>
          )}
          {job.added ? (
            <Figure
              name="added attempts"
              value={`${count(job.added.passed)} of ${count(endedOf(job.added))} passed`}
              hint="Attempts that were added after the planned ones; in no score and no other count"
            />
          ) : null}
        </Figures>
      </div>
      <div className="min-h-26 border-t">
        {report ? (
          <DataTable
            name="configurations"
            rows={report.configurations}
            columns={COLUMNS}
            rowKey={(of) => of.label}
            height="16rem"
            empty={<p className="p-3 text-sm text-ink-soft">Appears once trials have ended.</p>}
          />
        ) : (
          <Waiting rows={2} />
        )}
      </div>
    </section>
  );
}

/** What running trials have spent is in what the gate counted; what did not pass the gate is in the totals of ended tries. */
function spentOf({ totals, spending }: Schemas["JobDetail"]) {
  const counted = spending?.spent;
  const tokens = Math.max(counted?.tokens ?? 0, totals.input_tokens + totals.output_tokens);
  const dollars = Math.max(counted?.dollars ?? 0, totals.cost_usd ?? 0) || totals.cost_usd;
  return { tokens, dollars, calls: counted?.calls ?? 0 };
}

/** A column of numbers; `hint` says more where a number alone would mislead. */
function figures(
  id: string,
  name: string,
  width: string,
  text: (of: Configuration) => string,
  value: Column<Configuration>["value"],
  hint?: (of: Configuration) => string | undefined,
): Column<Configuration> {
  return { id, name, width, align: "right", cell: (of) => <span title={hint?.(of)}>{text(of)}</span>, value };
}

const COLUMNS: Column<Configuration>[] = [
  {
    id: "label",
    name: "Configuration",
    width: "minmax(12rem, 1fr)",
    cell: (of) => (
      <span className="font-medium" title={of.label}>
        {of.label}
      </span>
    ),
    value: (of) => of.label,
  },
  figures(
    "score",
    "Score",
    "5.5rem",
    ({ headline }) => (headline.value == null ? "not scored" : percent(headline.value)),
    ({ headline }) => headline.value,
  ),
  figures(
    "interval",
    "95 % interval",
    "8rem",
    ({ headline }) => uncertainty(headline.value, headline) || "none",
    ({ headline }) => (headline.low == null ? headline.no_interval : `${headline.low} to ${headline.high}`),
    ({ headline }) => headline.no_interval ?? undefined,
  ),
  figures(
    "coverage",
    "Coverage",
    "6rem",
    (of) => percent(of.coverage),
    (of) => of.coverage,
    ({ headline }) => `${headline.valid} valid of ${headline.planned} planned trials`,
  ),
  figures(
    "leaderboard",
    "Errors as 0",
    "6.5rem",
    ({ headline }) => (headline.value == null ? "–" : percent(headline.leaderboard)),
    ({ headline }) => (headline.value == null ? null : headline.leaderboard),
    () => "As leaderboards count",
  ),
  figures(
    "at",
    "pass@k",
    "8rem",
    (of) => rate(of, "pass_at_k"),
    (of) => rate(of, "pass_at_k"),
    whyNot,
  ),
  figures(
    "hat",
    "pass^k",
    "8rem",
    (of) => rate(of, "pass_hat_k"),
    (of) => rate(of, "pass_hat_k"),
    whyNot,
  ),
  figures(
    "cost",
    "Cost / trial",
    "6.5rem",
    (of) => money(of.spending.cost_per_trial),
    (of) => of.spending.cost_per_trial,
  ),
  figures(
    "time",
    "Median time",
    "6.5rem",
    (of) => duration(of.durations?.p50),
    (of) => of.durations?.p50,
  ),
];

/** At the largest k that every task has trials for. */
function rate(of: Configuration, name: "pass_at_k" | "pass_hat_k"): string {
  const best = of.valid.pass_rates.filter((one) => one[name] != null).at(-1);
  return best ? `${percent(best[name])} (k=${best.k})` : "–";
}

function whyNot(of: Configuration): string | undefined {
  return of.valid.pass_rates.find((one) => one.unavailable)?.unavailable ?? undefined;
}
