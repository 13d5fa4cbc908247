/** The terminal recording of a try: what the player gets, when it began, and how its time relates to the clock's. */

import { useQuery } from "@tanstack/react-query";

import { withAccess } from "@/api/access";
import { keyOf, type Try } from "./files";
import type { Step } from "./steps";

export type Recording = {
  /** An asciicast for the player, with long silences cut short; `null` when the try left none. */
  text: string | null;
  /** When it began, in milliseconds of the clock but told in whole seconds; `null` when it does not tell. */
  start: number | null;
  width: number;
  height: number;
  pending: boolean;
  /** In seconds of the player. */
  length: number;
  clock: Clock;
  /** What was typed, and when: in seconds since the beginning. */
  typed: { second: number; text: string }[];
};

/** Between seconds since the beginning and seconds of the player, which leaves silences out. */
export type Clock = { toPlayer: (second: number) => number; toReal: (second: number) => number };

const SAME: Clock = { toPlayer: (second) => second, toReal: (second) => second };
const NONE: Recording = {
  text: null,
  start: null,
  width: 160,
  height: 40,
  pending: false,
  length: 0,
  clock: SAME,
  typed: [],
};
const LONGEST_SILENCE = 2;
const TYPED_KEPT = 500;
const TIME = /^\[\s*([0-9.eE+-]+)\s*,/;

export function useRecording(of: Try, enabled: boolean): Recording {
  const query = useQuery({
    queryKey: keyOf(of, "recording"),
    queryFn: async () => {
      const answer = await fetch(`/api/v1/trials/${of.trial}/recording${of.tryNumber ? `?attempt=${of.tryNumber}` : ""}`, {
        headers: withAccess(),
      });
      return answer.ok ? shortened(await answer.text()) : NONE;
    },
    enabled,
    staleTime: Infinity,
  });
  if (enabled && query.isPending) return { ...NONE, pending: true };
  return query.data ?? NONE;
}

/** A recording as it was made, for the player. It comes from a sandbox: lines that are not events are left out. */
export function shortened(cast: string): Recording {
  const [first = "", ...lines] = cast.split("\n");
  const head = headOf(first);
  const written = [JSON.stringify({ version: 2, width: head.width, height: head.height })];
  const bends: Bend[] = [{ real: 0, player: 0 }];
  const typed: Recording["typed"] = [];
  let [before, real, player] = [0, 0, 0];
  for (const line of lines) {
    const told = Number(TIME.exec(line)?.[1] ?? Number.NaN);
    if (!Number.isFinite(told)) continue;
    real = Math.max(before, head.relative ? before + told : told);
    const silence = real - before;
    if (silence > LONGEST_SILENCE) bends.push({ real: before, player }, { real, player: player + LONGEST_SILENCE });
    player += Math.min(silence, LONGEST_SILENCE);
    written.push(line.replace(TIME, `[${player.toFixed(6)},`));
    before = real;
    const keys = typed.length < TYPED_KEPT ? keysOf(line) : null;
    if (keys != null) typed.push({ second: real, text: keys });
  }
  bends.push({ real, player });
  const clock = {
    toPlayer: (second: number) => along(bends, "real", "player", second),
    toReal: (second: number) => along(bends, "player", "real", second),
  };
  return {
    text: written.length > 1 ? written.join("\n") + "\n" : null,
    start: head.start,
    width: head.width,
    height: head.height,
    pending: false,
    length: player,
    clock,
    typed,
  };
}

/** Its beginning, better than to the second: what a step typed was typed after the step before it, and before its own end. */
export function beginning(recording: Recording, steps: Step[]): number | null {
  const { start, typed } = recording;
  if (start == null) return null;
  let [earliest, latest] = [start, start + 1000];
  let next = 0;
  let before: number | null = null;
  for (const { at, calls } of steps) {
    if (at == null) continue;
    const index = typed.findIndex(
      (one, place) => place >= next && calls.some((call) => call.text !== "" && call.text === one.text),
    );
    if (index >= 0) {
      const since = (typed[index]?.second ?? 0) * 1000;
      latest = Math.min(latest, at - since);
      if (before != null) earliest = Math.max(earliest, before - since);
      next = index + 1;
    }
    before = at;
  }
  return Math.max(start, (earliest + latest) / 2);
}

function keysOf(line: string): string | null {
  if (!/^\[[^,]*,\s*"i"/.test(line)) return null;
  try {
    return String((JSON.parse(line) as unknown[])[2]);
  } catch {
    return null;
  }
}

type Bend = { real: number; player: number };

function along(bends: Bend[], from: keyof Bend, to: keyof Bend, value: number): number {
  const next = bends.findIndex((bend) => bend[from] >= value);
  const [a, b] = next < 0 ? [bends.at(-1), undefined] : [bends[next - 1] ?? bends[next], bends[next]];
  if (!a || !b || b[from] === a[from]) return (b ?? a)?.[to] ?? value;
  return a[to] + ((value - a[from]) * (b[to] - a[to])) / (b[from] - a[from]);
}

function headOf(line: string): { start: number | null; width: number; height: number; relative: boolean } {
  try {
    const head = JSON.parse(line) as {
      version?: number;
      timestamp?: number;
      width?: number;
      height?: number;
      term?: { cols?: number; rows?: number };
    };
    const size = (given: number | undefined, usual: number) =>
      given && given > 0 && given <= 1000 ? Math.floor(given) : usual;
    return {
      start: typeof head.timestamp === "number" ? head.timestamp * 1000 : null,
      width: size(head.width ?? head.term?.cols, NONE.width),
      height: size(head.height ?? head.term?.rows, NONE.height),
      relative: head.version === 3,
    };
  } catch {
    return { start: null, width: NONE.width, height: NONE.height, relative: false };
  }
}
