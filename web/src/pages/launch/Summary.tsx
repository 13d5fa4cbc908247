import type { Schemas } from "@/api/client";
import { problemOf } from "@/api/problem";
import { Button } from "@/parts/Button";
import { Copy } from "@/parts/Copy";
import { count, duration, money } from "@/parts/format";
import { Figure } from "@/parts/Panel";
import type { Wish } from "./wish";

type Props = {
  estimate: Schemas["JobEstimate"] | undefined;
  error: unknown;
  lacking: string;
  wish: Wish;
  busy: boolean;
  onLaunch: () => void;
};

/** What the button will do, before it does it. "Copy as CLI" always matches the button. */
export function Summary({ estimate, error, lacking, wish, busy, onLaunch }: Props) {
  const problem = error ? problemOf(error) : null;
  const told = lacking || (problem ? `${problem.message} ${problem.fix ?? ""}` : "");
  const shown = lacking || problem ? undefined : estimate;
  return (
    <section
      aria-label="Summary"
      className="fixed inset-x-0 bottom-0 z-20 border-t bg-panel px-4 py-3 shadow-[0_-4px_16px_rgb(0_0_0/0.08)] sm:left-24"
    >
      <div className="mx-auto flex max-w-[1600px] flex-wrap items-center gap-x-7 gap-y-2">
        <Figure name="trials" value={shown ? count(shown.trials) : "–"} />
        <Figure
          name="time"
          value={duration(shown?.wall_seconds)}
          hint={
            shown?.based_on ? `From ${shown.based_on} earlier trials` : "No earlier trials of these tasks"
          }
        />
        <Figure
          name={wish.jobDollars && shown ? "estimated cost, of at most" : "estimated cost"}
          value={wish.jobDollars && shown ? `${money(shown.cost_usd)} of ${money(Number(wish.jobDollars))}` : money(shown?.cost_usd)}
          hint={shown?.unpriced?.length ? `No price is known for ${shown.unpriced.join(", ")}` : "From what earlier trials cost"}
        />
        <Figure
          name="minimum detectable difference"
          value={
            shown?.detectable_difference == null ? "–" : `${(shown.detectable_difference * 100).toFixed(1)} points`
          }
          hint="A smaller difference between two configurations cannot be distinguished from chance"
        />
        <div className="min-w-48 grow text-sm" role="status">
          {told ? (
            <p className="text-error">{told}</p>
          ) : (
            shown?.warnings.map((warning) => (
              <p key={warning} className="text-error">
                {warning}
              </p>
            ))
          )}
        </div>
        <Copy text={shown?.command}>Copy as CLI</Copy>
        <Copy text={shown?.curl}>Copy as curl</Copy>
        <Button kind="main" disabled={busy || !!told || !shown} onClick={onLaunch}>
          {busy ? "Launching …" : "Launch"}
        </Button>
      </div>
    </section>
  );
}
