import "@xterm/xterm/css/xterm.css";

import { Terminal } from "@xterm/xterm";
import { useEffect, useRef } from "react";

import type { LiveTerminal } from "./liveTerminal";

/** A column is about three fifths of the font's size wide. */
const COLUMN = 0.6;
const [SMALLEST, LARGEST] = [9, 12];

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Shows what the terminal shows; nothing typed here goes anywhere. */
export default function LiveScreen({ live }: { live: LiveTerminal }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return undefined;
    const room = place.current.clientWidth - 32;
    const fontFor = (columns: number) => Math.min(LARGEST, Math.max(SMALLEST, Math.floor(room / (columns * COLUMN))));
    const { width, height } = live.size();
    const terminal = new Terminal({
      cols: width,
      rows: height,
      disableStdin: true,
      convertEol: false,
      scrollback: 2000,
      fontSize: fontFor(width),
      screenReaderMode: true,
      // Links and titles that a sandbox asks for are its own affair.
      linkHandler: { activate: () => undefined },
      windowOptions: {},
      theme: { background: colour("--terminal"), foreground: colour("--terminal-ink") },
    });
    terminal.open(place.current);
    const stop = live.listen(
      (text) => terminal.write(text),
      (size) => {
        terminal.options.fontSize = fontFor(size.width);
        terminal.resize(size.width, size.height);
      },
    );
    return () => {
      stop();
      terminal.dispose();
    };
  }, [live]);
  return (
    <div
      className="h-[460px] overflow-auto bg-terminal p-2"
      ref={place}
      data-live-terminal
      tabIndex={0}
      role="region"
      aria-label="Live terminal"
    />
  );
}
