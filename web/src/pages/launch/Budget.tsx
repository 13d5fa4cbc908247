import { useQuery } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { FIELD } from "@/parts/field";
import { Panel } from "@/parts/Panel";
import { capProblem, leftOf, leftText, spentText } from "@/parts/spending";
import { CAPS, type Wish } from "./wish";

/** Today's spending is everybody's: it is asked for again while the form is open. */
const TODAY_MS = 15_000;
const ROWS = [
  { of: "job", name: "The whole job" },
  { of: "trial", name: "Each trial" },
] as const;

/** The most that models may cost. Empty fields are no caps. */
export function Budget({ wish, change }: { wish: Wish; change: (part: Partial<Wish>) => void }) {
  const today = useQuery({
    queryKey: ["budget", "today"],
    queryFn: () => unwrap(api.GET("/api/v1/budget")),
    refetchInterval: TODAY_MS,
  });
  const left = today.data ? leftOf(today.data.cap, today.data.spending).map(leftText).join(", ") : "";
  const spent = today.data ? spentText(today.data.spending.spent as never) : "";
  return (
    <Panel title="Budget for models">
      <div className="flex flex-col gap-2.5">
        {ROWS.map((row) => (
          <fieldset key={row.of} className="text-sm">
            <legend className="text-ink-soft">{row.name}, at most</legend>
            <div className="grid grid-cols-3 gap-2.5">
              {CAPS.filter(({ field }) => field.startsWith(row.of)).map(({ field, name, whole }) => (
                <input
                  key={field}
                  aria-label={name}
                  aria-invalid={!!capProblem(name, wish[field], whole)}
                  className={`${FIELD} w-full`}
                  inputMode={whole ? "numeric" : "decimal"}
                  placeholder={name.split(" ")[0]!.toLowerCase()}
                  value={wish[field]}
                  onChange={(event) => change({ [field]: event.target.value })}
                />
              ))}
            </div>
          </fieldset>
        ))}
        <p className="min-h-5 text-sm text-ink-soft" aria-label="Today" role="note">
          {today.data ? (
            left ? (
              <>
                Left of this installation’s budget for today: <strong>{left}</strong>.
              </>
            ) : (
              `This installation has no budget for a day. Spent today: ${spent || "nothing"}.`
            )
          ) : null}
        </p>
      </div>
    </Panel>
  );
}
