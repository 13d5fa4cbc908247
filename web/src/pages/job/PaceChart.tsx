import { Area, AreaChart, ResponsiveContainer, Tooltip, XAxis } from "recharts";

import { money } from "@/parts/format";

type Ended = { at: number; cost: number };

const [FEWEST, MOST] = [8, 40];

type Props = {
  /** In the order in which they ended. */
  ended: Ended[];
  /** How many are left now, and what everything has cost until now. */
  left: number;
  cost: number;
};

export default function PaceChart({ ended, left, cost }: Props) {
  const points = slices(ended, left, cost);
  return (
    <div className="flex flex-col gap-1">
      <Chart points={points} of="rate" name="ended per minute" colour="var(--accent)" />
      <Chart
        points={points}
        of="left"
        name="left to do"
        colour="var(--queued)"
        show={(value) => value.toLocaleString("en")}
        now={left}
      />
      {cost ? (
        <Chart points={points} of="cost" name="cost so far" colour="var(--error)" show={money} now={cost} />
      ) : null}
    </div>
  );
}

type Point = { at: number; rate: number; left: number; cost: number };

type ChartProps = {
  points: Point[];
  of: "rate" | "left" | "cost";
  name: string;
  colour: string;
  /** What is said beside the line; the pace itself is in the headline. */
  now?: number;
  show?: (value: number) => string;
};

function Chart({ points, of, name, colour, now, show = (value: number) => value.toFixed(1) }: ChartProps) {
  return (
    <figure className="grid grid-cols-[1fr_auto] items-center gap-2" aria-label={now == null ? name : `${name}: ${show(now)}`}>
      <div className="h-9">
        <ResponsiveContainer>
          <AreaChart data={points} margin={{ top: 2, bottom: 0, left: 0, right: 0 }} accessibilityLayer={false}>
            <XAxis dataKey="at" hide type="number" domain={["dataMin", "dataMax"]} />
            <Tooltip
              isAnimationActive={false}
              labelFormatter={(at) => new Date(Number(at)).toLocaleTimeString()}
              formatter={(value) => [show(Number(value)), name]}
              contentStyle={{ background: "var(--panel)", border: "1px solid var(--line)", fontSize: 12 }}
            />
            <Area
              dataKey={of}
              stroke={colour}
              fill={colour}
              fillOpacity={0.15}
              isAnimationActive={false}
              type="monotone"
            />
          </AreaChart>
        </ResponsiveContainer>
      </div>
      <figcaption className="w-28 text-right text-xs text-ink-soft">
        {name}
        {now == null ? null : (
          <>
            <br />
            <span className="font-semibold text-ink">{show(now)}</span>
          </>
        )}
      </figcaption>
    </figure>
  );
}

/** Equal slices of time; each says how many ended in it, how many were left after it and what all cost until then. */
function slices(ended: Ended[], left: number, total: number): Point[] {
  const [from, to] = [ended[0]?.at ?? 0, ended.at(-1)?.at ?? 0];
  const number = Math.min(MOST, Math.max(FEWEST, Math.floor(ended.length / 3)));
  const width = Math.max((to - from) / number, 1);
  const points: Point[] = [];
  let seen = 0;
  let cost = total - ended.reduce((sum, trial) => sum + trial.cost, 0);
  for (let slice = 0; slice < number; slice += 1) {
    const until = slice === number - 1 ? to : from + (slice + 1) * width;
    const before = seen;
    while (seen < ended.length && (ended[seen] as Ended).at <= until) {
      cost += (ended[seen] as Ended).cost;
      seen += 1;
    }
    points.push({ at: until, rate: ((seen - before) * 60_000) / width, left: left + ended.length - seen, cost });
  }
  return points;
}
