import type { Schemas } from "@/api/client";
import { count, percent } from "@/parts/format";
import { Figure, Figures, Panel } from "@/parts/Panel";

/** Of a job that stops when settled: what it found, what that saved, and what is guaranteed. */
export function Settled({ report }: { report: Schemas["JobReport"] | undefined }) {
  const found = report?.settled;
  return (
    <Panel title="Until settled" minHeight={150}>
      {found ? (
        <div className="flex flex-col gap-2.5">
          <p className="font-medium">{found.sentence}</p>
          <Figures>
            <Figure
              name="looks"
              value={`${found.looks_made} of ${found.looks_planned}`}
              hint="How often the answer was checked, of the planned checks"
            />
            <Figure name="trials run" value={`${count(found.trials_run)} of ${count(found.trials_planned)}`} />
            <Figure name="not needed" value={`${count(found.not_needed)} (${percent(found.saving)})`} />
            <Figure name="tasks run" value={`${count(found.tasks_run)} of ${count(found.tasks)}`} />
            <Figure name="alpha" value={String(found.alpha)} hint="Error probability over all looks together" />
            <Figure name="margin" value={`${found.margin} points`} hint="A difference below this counts as none" />
          </Figures>
          <p className="text-sm text-ink-soft">{found.guarantee}</p>
        </div>
      ) : null}
    </Panel>
  );
}
