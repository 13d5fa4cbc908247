import type { Schemas } from "@/api/client";
import { Figure } from "./Panel";
import { leftOf, leftText, spentText } from "./spending";

const WHOSE = { trial: "this trial", job: "the job", day: "today" } as const;

/** What remains of each cap. A cap that is used up says so in words, too. */
export function CapFigures({ caps }: { caps: Schemas["CapState"][] }) {
  return caps.map(({ of, cap, spending }) =>
    leftOf(cap, spending).map((left) => (
      <Figure
        key={`${of} ${left.unit}`}
        name={`left for ${WHOSE[of]}`}
        value={
          <span className={left.spent ? "text-error" : ""}>
            {left.spent ? "nothing" : leftText(left)}
          </span>
        }
        hint={`Spent ${spentText(spending.spent as never) || "nothing"}; of ${left.of} ${left.unit === "dollars" ? "" : left.unit}`.trim()}
      />
    )),
  );
}
