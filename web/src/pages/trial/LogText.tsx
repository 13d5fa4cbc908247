/** A log of any size: fetched once as bytes, cut into lines by their offsets, and only what is seen is ever decoded. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";

import { bytes } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { spansOf } from "./ansi";
import { findLine, lineStarts } from "./lines";
import { LARGEST, useLogBytes } from "./logBytes";

const ROW_PX = 17;

export function LogText({ url, size, find = "" }: { url: string; size: number; find?: string }) {
  const [wanted, setWanted] = useState(find);
  const [hit, setHit] = useState(-1);
  const [missed, setMissed] = useState("");
  const scroller = useRef<HTMLDivElement>(null);
  const { data, whole, error } = useLogBytes(url, size);
  const starts = useMemo(() => lineStarts(data), [data]);
  const rows = starts.length - 1;
  const list = useVirtualizer({
    count: rows,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 30,
  });
  useEffect(() => {
    // Somebody came from a search: what they look for is shown as soon as all of it is there.
    if (!whole || !find) return;
    const found = findLine(data, starts, find, 0);
    setHit(found);
    setMissed(found < 0 ? find : "");
    if (found >= 0) list.scrollToIndex(found, { align: "center" });
  }, [whole, find]);
  if (error) return <Trouble error={error} />;
  if (!data.length) return whole ? <Empty>This log is empty.</Empty> : <Waiting />;

  function search() {
    const found = findLine(data, starts, wanted, hit + 1);
    setHit(found);
    setMissed(found < 0 ? wanted : "");
    if (found >= 0) list.scrollToIndex(found, { align: "center" });
  }

  return (
    <div>
      <form
        className="flex items-center gap-2 border-b px-2 py-1 text-xs text-ink-soft"
        onSubmit={(event) => {
          event.preventDefault();
          search();
        }}
      >
        <input
          type="search"
          aria-label="Search the log"
          placeholder="Search the log"
          value={wanted}
          onChange={(event) => {
            setWanted(event.target.value);
            setHit(-1);
          }}
          className="h-6 w-56 rounded-md border border-line-strong bg-panel px-2 placeholder:text-ink-faint"
        />
        <span role="status">
          {missed && missed === wanted
            ? `no line has "${wanted}"${whole ? "" : " so far"}`
            : wanted && hit >= 0
            ? `line ${hit + 1}; Enter for the next`
            : `${rows.toLocaleString("en")} lines, ${bytes(size)}${whole ? "" : ", reading …"}`}
        </span>
        {size > LARGEST ? <span className="text-error">the last {bytes(LARGEST)} of it</span> : null}
      </form>
      <div
        ref={scroller}
        className="h-[30rem] overflow-auto bg-terminal text-terminal-ink"
        tabIndex={0}
        role="region"
        aria-label="Log"
        data-log
      >
        <div className="relative font-mono text-xs" style={{ height: list.getTotalSize(), minWidth: "max-content" }}>
          {list.getVirtualItems().map((item) => (
            <div
              key={item.key}
              className={`absolute left-0 flex whitespace-pre ${item.index === hit ? "bg-white/15" : ""}`}
              style={{ height: ROW_PX, transform: `translateY(${item.start}px)` }}
            >
              <span className="w-16 shrink-0 pr-3 text-right text-terminal-ink/60 select-none">{item.index + 1}</span>
              <Line data={data} from={starts[item.index] as number} to={starts[item.index + 1] as number} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

const decoder = new TextDecoder();

function Line({ data, from, to }: { data: Uint8Array; from: number; to: number }) {
  const text = decoder.decode(data.subarray(from, to)).replace(/[\r\n]+$/, "");
  return (
    <span>
      {spansOf(text).map((span, index) => (
        <span key={index} style={span.style}>
          {span.text}
        </span>
      ))}
    </span>
  );
}
