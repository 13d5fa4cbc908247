import type { ReactNode } from "react";

import { percent, plural } from "@/parts/format";
import { Figure, Figures, Panel } from "@/parts/Panel";
import { dollars, points, pointsTo, probability, seconds, signed, tokens } from "./figures";
import type { Comparison } from "./wish";

type Effort = Comparison["efforts"]["cost_usd"];

/** One pair: the sentence, then score, cost, tokens and time of both with their difference. */
export function Verdict({ item }: { item: Comparison }) {
  const { efforts, interval } = item;
  return (
    <Panel title={`${item.label_b} against ${item.label_a}`} flush>
      <p className="px-3 pt-3 text-sm text-balance" data-verdict>
        {item.verdict}
      </p>
      <div
        className="relative overflow-x-auto p-3 focus-visible:outline-offset-[-2px]"
        tabIndex={0}
        role="region"
        aria-label={`Numbers of ${item.label_b} against ${item.label_a}`}
      >
        <table className="w-full max-w-3xl text-sm" aria-label={`${item.label_b} against ${item.label_a}`}>
          <thead>
            <tr className="text-right text-xs text-ink-soft">
              <th scope="col" className="pr-3 text-left font-medium">
                On {plural(item.tasks.length, "common tasks")}
              </th>
              {[`A: ${item.label_a}`, `B: ${item.label_b}`, "B − A", "95 % interval"].map((name) => (
                <th key={name} scope="col" className="max-w-48 truncate pl-4 font-medium" title={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="[&_td]:pl-4 [&_td]:text-right [&_td]:whitespace-nowrap">
            <Line name="Score" a={percent(item.score_a)} b={percent(item.score_b)} why={item.unavailable?.interval}>
              {item.a_minus_b == null ? "–" : <Change of={-item.a_minus_b} />}
              {interval ? pointsTo(-interval.high, -interval.low) : null}
            </Line>
            <EffortLine name="Cost / trial" of={efforts.cost_usd} write={dollars} none="cost not reported by both" />
            <EffortLine name="Tokens / trial" of={efforts.tokens} write={tokens} none="tokens not reported by both" />
            <EffortLine name="Time / trial" of={efforts.seconds} write={seconds} none="time not reported by both" />
          </tbody>
        </table>
      </div>
      <div className="px-3 pb-3">
        <Tests item={item} />
      </div>
      <Missing item={item} />
    </Panel>
  );
}

function Line(props: { name: string; a: string; b: string; why?: string; children: [ReactNode, ReactNode] }) {
  const [change, interval] = props.children;
  return (
    <tr className="border-t">
      <th scope="row" className="py-1 pr-3 text-left font-normal text-ink-soft">
        {props.name}
      </th>
      <td>{props.a}</td>
      <td>{props.b}</td>
      <td className="font-semibold">{change}</td>
      <td className="text-ink-soft" title={interval ? undefined : props.why}>
        {interval ?? "none"}
      </td>
    </tr>
  );
}

function EffortLine({
  name,
  of,
  write,
  none,
}: {
  name: string;
  of: Effort;
  write: (value: number) => string;
  none: string;
}) {
  if (!of)
    return (
      <tr className="border-t">
        <th scope="row" className="py-1 pr-3 text-left font-normal text-ink-soft">
          {name}
        </th>
        <td colSpan={4} className="text-ink-soft">
          {none}
        </td>
      </tr>
    );
  return (
    <Line name={name} a={write(of.a)} b={write(of.b)} why="Every task differs by the same amount, or there is only one">
      {signed(-of.a_minus_b, write)}
      {of.interval
        ? `${signed(-of.interval.high, write).replace("+", "")} to ${signed(-of.interval.low, write).replace("+", "")}`
        : null}
    </Line>
  );
}

function Tests({ item }: { item: Comparison }) {
  const { significance, mcnemar } = item;
  return (
    <Figures end>
      <Figure
        name={item.p_holm != null ? `p (Holm over ${item.pairs} pairs)` : "p"}
        value={significance ? probability(item.p_holm ?? significance.p) : "–"}
        hint={significance?.test ?? item.unavailable?.significance}
      />
      {mcnemar && mcnemar.test !== significance?.test ? (
        <Figure name="p (McNemar)" value={probability(mcnemar.p)} hint="Over the tasks on which one side is ahead" />
      ) : null}
      <Figure name="better on · worse on" value={`${item.ahead_b} · ${plural(item.ahead_a, "tasks")}`} />
      <Figure
        name="minimum detectable difference"
        value={item.detectable == null ? "–" : `${points(item.detectable).replace("+", "")} points`}
        hint="Seen with a chance of 80 %"
      />
    </Figures>
  );
}

const REASONS = [
  ["only_a", "Only A has"],
  ["only_b", "Only B has"],
  ["changed", "Same name, other content"],
  ["no_valid_trial", "Without a valid trial on one side"],
] as const;

/** Tasks that could not be compared, and numbers that are missing and the sentence has not explained. */
function Missing({ item }: { item: Comparison }) {
  const untold = [...new Set(Object.values(item.unavailable ?? {}))].filter((why) => !item.verdict.includes(why));
  const left = REASONS.flatMap(([name, text]) => {
    const tasks = item.left_out[name] ?? [];
    return tasks.length ? [{ text, tasks }] : [];
  });
  if (!untold.length && !left.length) return null;
  return (
    <div className="flex flex-col gap-1 border-t px-3 py-2 text-xs text-ink-soft">
      {untold.map((why) => (
        <p key={why}>
          {why[0]?.toUpperCase()}
          {why.slice(1)}.
        </p>
      ))}
      {left.map(({ text, tasks }) => (
        <p key={text} className="break-words" data-left-out>
          {text}: {tasks.slice(0, 12).join(", ")}
          {tasks.length > 12 ? ` and ${tasks.length - 12} more` : ""}
        </p>
      ))}
    </div>
  );
}

/** A difference of shares, with a colour and a shape. */
export function Change({ of, unit = true }: { of: number; unit?: boolean }) {
  const look = of > 0 ? "text-passed" : of < 0 ? "text-failed" : "text-ink-soft";
  return (
    <span className={look}>
      {of > 0 ? "▲" : of < 0 ? "▼" : "="} {points(of)}
      {unit ? " points" : ""}
    </span>
  );
}
