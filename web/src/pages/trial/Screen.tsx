/** The agent's terminal: live while it runs, a recording with a seek bar afterwards. Both are chunks of their own. */

import { lazy, Suspense } from "react";

import { Empty } from "@/parts/Notice";
import type { LiveTerminal } from "./liveTerminal";
import type { Recording } from "./recording";
import { boxOf } from "./box";

const LiveScreen = lazy(() => import("./LiveScreen"));
const Player = lazy(() => import("./Player"));

type Props = {
  state: string;
  live: LiveTerminal;
  recording: Recording;
  goal: { second: number } | null;
  onTime: (second: number) => void;
};

export function Screen({ state, live, recording, goal, onTime }: Props) {
  const space = <div className="h-[460px] bg-terminal" aria-busy />;
  if (state === "running")
    return (
      <Suspense fallback={space}>
        <LiveScreen live={live} />
      </Suspense>
    );
  if (state !== "ended") return <Empty>The terminal appears here when a worker claims this trial.</Empty>;
  const box = <div className="bg-terminal" style={boxOf(recording)} aria-busy />;
  if (recording.pending) return box;
  if (!recording.text)
    return (
      <Empty>
        This try left no terminal recording. Agents that work inside the sandbox, and the oracle, write logs instead:
        see Logs below.
      </Empty>
    );
  return (
    <Suspense fallback={box}>
      <Player recording={recording} goal={goal} onTime={onTime} />
    </Suspense>
  );
}
