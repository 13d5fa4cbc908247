import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";

/** Rows that are remembered: one of them may go elsewhere, as a trial does that ends; most stay together. */
const IN_SIGHT = 9;

/**
 * Keeps what somebody reads where it is while rows arrive above it. The first rows in sight are remembered by their
 * keys: the returned function has to be told how far it was scrolled whenever that changes.
 */
export function useAnchor<Key>(
  scroller: RefObject<HTMLElement | null>,
  keys: Key[],
  rowPx: number,
): (scrolled: number) => void {
  const anchor = useRef<{ seen: Key[]; index: number } | null>(null);
  const remember = useCallback(
    (scrolled: number) => {
      const index = Math.floor(scrolled / rowPx);
      const seen = keys.slice(index, index + IN_SIGHT);
      anchor.current = index > 0 && seen.length ? { seen, index } : null;
    },
    [keys, rowPx],
  );
  useLayoutEffect(() => {
    const { current: element } = scroller;
    const { current: before } = anchor;
    const moved = before ? commonMove(before.seen, before.index, keys) : 0;
    if (!element || !before || !moved) return;
    element.scrollTop += moved * rowPx;
    const index = before.index + moved;
    anchor.current = { seen: keys.slice(index, index + IN_SIGHT), index };
  }, [scroller, keys, rowPx]);
  return remember;
}

/** By how many rows most of them moved; those that are gone do not count. */
function commonMove<Key>(seen: Key[], index: number, keys: Key[]): number {
  const moves = seen
    .map((key, offset) => [keys.indexOf(key), index + offset] as const)
    .filter(([now]) => now >= 0)
    .map(([now, before]) => now - before)
    .sort((a, b) => a - b);
  return moves[Math.floor((moves.length - 1) / 2)] ?? 0;
}
