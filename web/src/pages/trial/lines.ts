/** Where the lines of a log begin. A line without end is cut, so that one row never holds megabytes. */

const NEWLINE = 10;
const LONGEST = 4000;

export function lineStarts(data: Uint8Array): Uint32Array {
  let starts = new Uint32Array(1 << 12);
  let found = 1;
  const add = (at: number) => {
    if (found === starts.length) {
      const larger = new Uint32Array(starts.length * 2);
      larger.set(starts);
      starts = larger;
    }
    starts[found] = at;
    found += 1;
  };
  let from = 0;
  while (from < data.length) {
    let newline = data.indexOf(NEWLINE, from);
    if (newline < 0) newline = data.length - 1;
    while (newline - from > LONGEST) {
      from += LONGEST;
      add(from);
    }
    from = newline + 1;
    add(from);
  }
  return starts.slice(0, found);
}

/** The first line at or after `from` that holds the text; −1 when there is none. Bytes are compared, case and all. */
export function findLine(data: Uint8Array, starts: Uint32Array, wanted: string, from: number): number {
  const needle = new TextEncoder().encode(wanted);
  const first = needle[0];
  if (first === undefined) return -1;
  let at = starts[Math.min(from, starts.length - 1)] as number;
  while ((at = data.indexOf(first, at)) >= 0) {
    if (needle.every((byte, index) => data[at + index] === byte)) return lineOf(starts, at);
    at += 1;
  }
  return -1;
}

function lineOf(starts: Uint32Array, at: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] as number) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
