/** The bytes of a log as they come in: what is there already can be read while the rest is on its way. */

import { useEffect, useState } from "react";

import { withAccess } from "@/api/access";

/** Of a longer log only the end is fetched. */
export const LARGEST = 64 << 20;
const FIRST = 256 << 10;

export type LogBytes = { data: Uint8Array; whole: boolean; error: unknown };

const NOTHING: LogBytes = { data: new Uint8Array(0), whole: false, error: null };

export function useLogBytes(url: string, size: number): LogBytes {
  const [state, setState] = useState<LogBytes>(NOTHING);
  useEffect(() => {
    const stopping = new AbortController();
    setState(NOTHING);
    read(url, size, stopping.signal, setState).catch((error: unknown) => {
      if (!stopping.signal.aborted) setState((old) => ({ ...old, error }));
    });
    return () => stopping.abort();
  }, [url, size]);
  return state;
}

async function read(url: string, size: number, signal: AbortSignal, tell: (state: LogBytes) => void) {
  const answer = await fetch(url, { signal, headers: withAccess(size > LARGEST ? { Range: `bytes=-${LARGEST}` } : {}) });
  if (!answer.ok || !answer.body) throw new Error(`The log could not be read (${answer.status}).`);
  const reader = answer.body.getReader();
  const data = new Uint8Array(Math.min(size, LARGEST));
  let filled = 0;
  let next = FIRST;
  for (;;) {
    const { done, value } = await reader.read();
    const piece = value?.subarray(0, data.length - filled);
    if (piece) data.set(piece, filled);
    filled += piece?.length ?? 0;
    if (done) break;
    // Told at every doubling, so that cutting it into lines again and again costs no more than twice.
    if (filled >= next) {
      tell({ data: data.subarray(0, filled), whole: false, error: null });
      next = filled * 2;
    }
  }
  tell({ data: data.subarray(0, filled), whole: true, error: null });
}
