import type { Schemas } from "@/api/client";
import { CapFigures } from "@/parts/CapFigures";
import { count, duration, money } from "@/parts/format";
import { Figure, Figures, Panel } from "@/parts/Panel";
import type { Sums } from "./calls";

/** What a running try has spent on models, and what its caps leave. */
export function Spend({ sums, caps }: { sums: Sums; caps: Schemas["CapState"][] }) {
  return (
    <Panel>
      <div role="group" aria-label="Model spending">
        <Figures>
          <Figure name="model calls" value={count(sums.calls)} hint="Calls of this try that have ended" />
          <Figure name="tokens" value={count(sums.tokens)} hint="Input and output, in this try" />
          <Figure name="cost" value={money(sums.cost)} hint="In this try; – if the model has no known price" />
          {sums.waited >= 0.05 ? (
            <Figure name="rate-limited" value={duration(sums.waited)} hint="Waiting, because the provider limits the pace" />
          ) : null}
          <CapFigures caps={caps} />
        </Figures>
      </div>
    </Panel>
  );
}
