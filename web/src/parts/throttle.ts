/** At most one call in `ms`; the last one always happens. */
export function throttled(call: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      call();
    }, ms);
  };
}
