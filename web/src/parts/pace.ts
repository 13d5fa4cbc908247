/** How often the page may ask, however fast events come in. */

/** Called at once where it was quiet, then at most once in `ms` and never twice at a time; the last wish always comes true. */
export function paced(call: () => Promise<unknown>, ms: number): () => void {
  let [busy, wanted] = [false, false];
  async function run() {
    busy = true;
    while (wanted) {
      wanted = false;
      // What goes wrong is told where it is shown; the next event asks again.
      await Promise.allSettled([call(), new Promise((resolve) => setTimeout(resolve, ms))]);
    }
    busy = false;
  }
  return () => {
    wanted = true;
    if (!busy) void run();
  };
}

/** Called once it has been quiet for `ms`. */
export function onceQuiet(call: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, ms);
  };
}
