import type { Schemas } from "@/api/client";
import { CsvButton } from "@/parts/CsvButton";
import type { CsvColumn } from "@/parts/csv";
import { count, duration, money, percent } from "@/parts/format";
import { Figure } from "@/parts/Panel";
import { Score, uncertainty } from "@/parts/Score";

type Configuration = Schemas["ConfigurationReport"];

/** The numbers of the job, each with its uncertainty; one line for each configuration. */
export function Headline({ job, report }: { job: Schemas["JobDetail"]; report: Schemas["JobReport"] | undefined }) {
  const seconds = job.started_at ? ((job.ended_at ? Date.parse(job.ended_at) : Date.now()) - Date.parse(job.started_at)) / 1000 : null;
  const ended = job.counts.passed + job.counts.failed + job.counts.error + job.counts.cancelled;
  const pace = seconds && ended ? ended / seconds : null;
  return (
    <section aria-label="Result" className="rounded-lg border bg-panel">
      <div className="flex flex-wrap items-end gap-x-7 gap-y-3 p-3">
        <div>
          <div className="text-xs text-ink-faint">score</div>
          <Score of={job.score} large />
        </div>
        <Figure name="passed" value={`${count(job.counts.passed)} of ${count(job.counts.total)}`} />
        <Figure name="coverage" value={percent(job.score?.coverage)} hint="Trials that could be graded, of those that ended; the rest were errors, which count against no agent" />
        <Figure name="cost" value={money(job.totals.cost_usd)} hint="What the models' services charge, where the agent told it" />
        <Figure name="tokens" value={count(job.totals.input_tokens + job.totals.output_tokens)} />
        <Figure name="time" value={duration(seconds)} />
        <Figure name="pace" value={pace ? `${pace.toFixed(pace < 1 ? 2 : 1)} trials/s` : "–"} />
        <Figure name="in flight" value={`${count(job.counts.queued)} queued · ${count(job.counts.running)} running`} />
      </div>
      {report && report.configurations.length > 0 ? <Configurations of={report.configurations} /> : null}
    </section>
  );
}

type Line = CsvColumn<Configuration> & { text: (of: Configuration) => string; hint?: (of: Configuration) => string | undefined };

const LINES: Line[] = [
  { name: "Score", text: (of) => percent(of.leaderboard.value), value: (of) => of.leaderboard.value, hint: (of) => intervalOf(of)?.note || undefined },
  { name: "95 % interval", text: (of) => (of.leaderboard.value == null ? "–" : uncertainty(of.leaderboard.value, intervalOf(of) ?? {}) || "–"), value: (of) => (intervalOf(of) ? `${intervalOf(of)?.low} to ${intervalOf(of)?.high}` : "") },
  { name: "Valid only", text: (of) => percent(of.valid.value), value: (of) => of.valid.value },
  { name: "Coverage", text: (of) => percent(of.coverage), value: (of) => of.coverage },
  { name: "pass@k", text: (of) => rate(of, "pass_at_k"), value: (of) => rate(of, "pass_at_k"), hint: whyNot },
  { name: "pass^k", text: (of) => rate(of, "pass_hat_k"), value: (of) => rate(of, "pass_hat_k"), hint: whyNot },
  { name: "Cost / trial", text: (of) => money(of.spending.cost_per_trial), value: (of) => of.spending.cost_per_trial },
  { name: "Median time", text: (of) => duration(of.durations?.p50), value: (of) => of.durations?.p50 },
];

function Configurations({ of }: { of: Configuration[] }) {
  const columns: CsvColumn<Configuration>[] = [{ name: "Configuration", value: (line) => line.label }, ...LINES];
  return (
    <div className="flex items-start border-t">
      <div className="min-w-0 grow overflow-x-auto" tabIndex={0} role="region" aria-label="Configurations">
        <table className="w-full text-sm whitespace-nowrap">
          <thead>
            <tr className="text-xs text-ink-soft">
              <th className="px-3 py-1.5 text-left font-medium">Configuration</th>
              {LINES.map((line) => <th key={line.name} className="px-3 text-right font-medium">{line.name}</th>)}
            </tr>
          </thead>
          <tbody>
            {of.map((configuration) => (
              <tr key={configuration.label} className="border-t">
                <td className="max-w-96 truncate px-3 py-1.5 font-medium" title={configuration.label}>{configuration.label}</td>
                {LINES.map((line) => <td key={line.name} className="px-3 text-right" title={line.hint?.(configuration)}>{line.text(configuration)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <CsvButton name="configurations" columns={columns} rows={of} />
    </div>
  );
}

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
