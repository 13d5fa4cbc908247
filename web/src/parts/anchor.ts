import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";

/**
 * Keeps what somebody reads where it is while rows arrive above it. The first row in sight is remembered by its key:
 * the returned function has to be told how far it was scrolled whenever that changes.
 */
export function useAnchor<Key>(
  scroller: RefObject<HTMLElement | null>,
  keys: Key[],
  rowPx: number,
): (scrolled: number) => void {
  const anchor = useRef<{ key: Key; index: number } | null>(null);
  const remember = useCallback(
    (scrolled: number) => {
      const index = Math.floor(scrolled / rowPx);
      const key = keys[index];
      anchor.current = index > 0 && key !== undefined ? { key, index } : null;
    },
    [keys, rowPx],
  );
  useLayoutEffect(() => {
    const { current: element } = scroller;
    const { current: before } = anchor;
    const index = before ? keys.indexOf(before.key) : -1;
    if (!element || !before || index < 0 || index === before.index) return;
    element.scrollTop += (index - before.index) * rowPx;
    anchor.current = { key: before.key, index };
  }, [scroller, keys, rowPx]);
  return remember;
}
