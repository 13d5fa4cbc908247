import type { Schemas } from "@/api/client";
import { useNow } from "@/parts/clock";
import type { Column } from "@/parts/column";
import { DataTable } from "@/parts/DataTable";
import { count, duration, money, percent } from "@/parts/format";
import { elapsed } from "@/parts/Moment";
import { Waiting } from "@/parts/Notice";
import { Figure, Figures } from "@/parts/Panel";
import { endedOf } from "@/parts/Progress";
import { Score, uncertainty } from "@/parts/Score";

type Configuration = Schemas["ConfigurationReport"];

/** The numbers of the job, each with its uncertainty; one line for each configuration. */
export function Headline({ job, report }: { job: Schemas["JobDetail"]; report: Schemas["JobReport"] | undefined }) {
  const seconds = elapsed(job.started_at, job.ended_at, useNow(job.ended_at ? null : 1000));
  const ended = endedOf(job.counts);
  const pace = seconds && ended ? ended / seconds : null;
  return (
    <section aria-label="Result" className="rounded-lg border bg-panel">
      <div className="p-3">
        <Figures end>
          <div className="col-span-2">
            <div className="text-xs text-ink-faint">score</div>
            <Score of={job.score} large />
          </div>
          <Figure name="passed" value={`${count(job.counts.passed)} of ${count(job.counts.total)}`} />
          <Figure
            name="coverage"
            value={percent(job.score?.coverage)}
            hint="Share of ended trials that could be graded; the others were infrastructure errors"
          />
          <Figure
            name="cost"
            value={money(job.totals.cost_usd)}
            hint="Cost of model calls, as reported by agents"
          />
          <Figure name="tokens" value={count(job.totals.input_tokens + job.totals.output_tokens)} />
          <Figure name="time" value={duration(seconds)} />
          <Figure name="pace" value={pace ? `${pace.toFixed(pace < 1 ? 2 : 1)} trials/s` : "–"} />
          <Figure
            name="in flight"
            value={`${count(job.counts.queued)} queued · ${count(job.counts.running)} running`}
          />
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
    (of) => percent(of.leaderboard.value),
    (of) => of.leaderboard.value,
    (of) => intervalOf(of)?.note || undefined,
  ),
  figures(
    "interval",
    "95 % interval",
    "8rem",
    (of) => (of.leaderboard.value == null ? "–" : uncertainty(of.leaderboard.value, intervalOf(of) ?? {}) || "–"),
    (of) => (intervalOf(of) ? `${intervalOf(of)?.low} to ${intervalOf(of)?.high}` : ""),
    (of) => intervalOf(of)?.note || undefined,
  ),
  figures(
    "valid",
    "Valid only",
    "6rem",
    (of) => percent(of.valid.value),
    (of) => of.valid.value,
  ),
  figures(
    "coverage",
    "Coverage",
    "6rem",
    (of) => percent(of.coverage),
    (of) => of.coverage,
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

function intervalOf(of: Configuration) {
  return of.leaderboard.tasks_as_sample ?? of.leaderboard.tasks_fixed;
}

/** At the largest k that every task has trials for. */
function rate(of: Configuration, name: "pass_at_k" | "pass_hat_k"): string {
  const best = of.leaderboard.pass_rates.filter((one) => one[name] != null).at(-1);
  return best ? `${percent(best[name])} (k=${best.k})` : "–";
}

function whyNot(of: Configuration): string | undefined {
  return of.leaderboard.pass_rates.find((one) => one.unavailable)?.unavailable ?? undefined;
}
