/** The agent's terminal: live while it runs, a recording with a seek bar afterwards. Both are chunks of their own. */

import { lazy, Suspense } from "react";

import { Empty } from "@/parts/Notice";
import type { LiveTerminal } from "./liveTerminal";
import type { Recording } from "./recording";

const LiveScreen = lazy(() => import("./LiveScreen"));
const Player = lazy(() => import("./Player"));

type Props = { running: boolean; live: LiveTerminal; recording: Recording; seekTo: number | null; onTime: (second: number) => void };

export function Screen({ running, live, recording, seekTo, onTime }: Props) {
  const space = <div className="h-[420px] bg-terminal" aria-busy />;
  if (running) return <Suspense fallback={space}><LiveScreen live={live} /></Suspense>;
  if (recording.pending) return space;
  if (!recording.text) return <Empty>This try left no terminal recording. Agents that work inside the sandbox, and the oracle, write logs instead: see Logs below.</Empty>;
  const second = seekTo != null && recording.start != null ? Math.max(0, (seekTo - recording.start) / 1000) : null;
  return <Suspense fallback={space}><Player recording={recording} seekTo={second} onTime={onTime} /></Suspense>;
}
