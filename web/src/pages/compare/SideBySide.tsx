/** Two trials together: steps opposite each other, both recordings at the same step, and the first difference one click away. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from "react";

import { api, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { useFilters } from "@/parts/Filters";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { AlignedSteps } from "./AlignedSteps";
import { Flips } from "./Flips";
import { near, type Rows } from "./rows";
import { type Side, stepAt } from "./side";

const Player = lazy(() => import("../trial/Player"));

type Which = "left" | "right";

export function SideBySide({ left, right }: { left: Side; right: Side }) {
  const [filters, setFilter] = useFilters();
  const [isLinked, setLinked] = useState(true);
  const [lead, setLead] = useState<Which | null>(null);
  const [playing, setPlaying] = useState<number | null>(null);
  const found = useQuery({
    queryKey: ["parting", left.trial?.id, right.trial?.id],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/trials/{trial_id}/diverges-from/{other_id}", {
          params: { path: { trial_id: left.trial?.id ?? 0, other_id: right.trial?.id ?? 0 } },
        }),
      ),
    enabled: !!left.trial && !!right.trial,
  });
  const alignment = found.data?.alignment;
  const rows: Rows = useMemo(() => alignment?.rows ?? [], [alignment]);
  const first = alignment?.first_difference ?? null;
  const at = filters.row ? Number(filters.row) - 1 : null;

  const bring = useCallback(
    (which: Which, row: number) => {
      const side = which === "left" ? left : right;
      const moment = side.steps[near(rows, which, row)]?.at;
      if (moment != null) side.seek(moment);
    },
    [left, right, rows],
  );
  const choose = (row: number, which: Which | "both") => {
    setFilter("row", String(row + 1));
    setLead(null);
    setPlaying(row);
    if (which !== "right" || isLinked) bring("left", row);
    if (which !== "left" || isLinked) bring("right", row);
  };
  // Only the recording that somebody touched moves the other: both would chase each other.
  const last = useRef(-1);
  const follow = (which: Which, second: number) => {
    if (lead !== which) return;
    const side = which === "left" ? left : right;
    const step = stepAt(side.steps, side.played(second));
    const row = rows.findIndex((one) => one[which] === step + 1);
    if (row < 0 || row === last.current) return;
    last.current = row;
    setPlaying(row);
    if (isLinked) bring(which === "left" ? "right" : "left", row);
  };

  if (found.error) return <Trouble error={found.error} />;
  if (!found.data || left.pending || right.pending) return <Waiting rows={10} />;
  return (
    <>
      <Panel title="What differs">
        <div className="flex flex-col gap-3 text-sm">
          <div className="flex flex-wrap items-center gap-3">
            <p data-parting>{sentence(found.data.steps_left, found.data.steps_right, first, rows, left, right)}</p>
            {first == null ? null : (
              <Button kind="main" onClick={() => choose(first, "both")}>
                Go to the first difference
              </Button>
            )}
          </div>
          <Flips flips={found.data.tests} />
        </div>
      </Panel>
      {left.recording.text || left.recording.pending || right.recording.text || right.recording.pending ? (
        <div className="grid grid-cols-[minmax(0,1fr)] gap-3 md:grid-cols-2">
          {(["left", "right"] as const).map((which) => (
            <Terminal
              key={which}
              side={which === "left" ? left : right}
              onTouch={() => setLead(which)}
              onTime={(second) => follow(which, second)}
            />
          ))}
        </div>
      ) : null}
      <Panel
        title={`Steps (${left.steps.length} and ${right.steps.length})`}
        flush
        side={
          <label className="inline-flex items-center gap-1.5 text-xs text-ink-soft">
            <input type="checkbox" checked={isLinked} onChange={(event) => setLinked(event.target.checked)} />
            move together
          </label>
        }
      >
        {rows.length ? (
          <AlignedSteps
            rows={rows}
            left={left}
            right={right}
            at={at}
            playing={playing}
            first={first}
            onChoose={choose}
          />
        ) : (
          <Empty>Neither left a trajectory.</Empty>
        )}
        {alignment && !alignment.matched ? (
          <p className="px-3 py-2 text-xs text-ink-soft">
            There are too many steps to match them after the first difference: they are opposite each other by their
            number.
          </p>
        ) : null}
        {alignment?.left_off ? (
          <p className="px-3 py-2 text-xs text-ink-soft">
            {alignment.left_off.toLocaleString("en")} further rows are not shown.
          </p>
        ) : null}
      </Panel>
    </>
  );
}

function sentence(lefts: number, rights: number, first: number | null, rows: Rows, left: Side, right: Side): string {
  if (!lefts && !rights) return "Neither left a trajectory.";
  const row = first == null ? null : rows[first];
  if (!row) return "Both took the same steps.";
  const [mine, other] = [numberOf(left, row.left), numberOf(right, row.right)];
  if (mine != null && other != null)
    return mine === other
      ? `First difference: step ${mine}.`
      : `First difference: step ${mine} on the left, step ${other} on the right.`;
  return mine != null
    ? `First difference: step ${mine}, which only the left one took.`
    : `First difference: step ${other}, which only the right one took.`;
}

const numberOf = (side: Side, place: number | null | undefined) => (place ? side.steps[place - 1]?.number : undefined);

function Terminal({ side, onTouch, onTime }: { side: Side; onTouch: () => void; onTime: (second: number) => void }) {
  const space = <div className="h-[460px] bg-terminal" aria-busy />;
  return (
    <Panel title={`Terminal of trial ${side.trial?.id}`} flush>
      <div onPointerDownCapture={onTouch} onKeyDownCapture={onTouch}>
        {side.recording.pending ? (
          space
        ) : side.recording.text ? (
          <Suspense fallback={space}>
            <Player
              recording={side.recording}
              goal={side.goal}
              onTime={onTime}
              name={`Recording of trial ${side.trial?.id}`}
            />
          </Suspense>
        ) : (
          <Empty>This trial left no terminal recording.</Empty>
        )}
      </div>
    </Panel>
  );
}
