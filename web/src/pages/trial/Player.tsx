import "asciinema-player/dist/bundle/asciinema-player.css";

import * as Asciinema from "asciinema-player";
import { useEffect, useRef } from "react";

import type { Recording } from "./recording";

type Control = { dispose(): void; seek(to: number): Promise<unknown>; getCurrentTime(): Promise<number> | number };

/** The recording with its seek bar. It moves when a step is chosen, and tells where it is. */
export default function Player({ recording, seekTo, onTime }: { recording: Recording; seekTo: number | null; onTime: (second: number) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const player = useRef<Control | null>(null);
  useEffect(() => {
    if (!place.current || !recording.text) return undefined;
    const control = Asciinema.create({ data: recording.text }, place.current, {
      fit: "width", cols: recording.width, rows: recording.height, idleTimeLimit: 2, preload: true, terminalFontSize: "11px", controls: true,
      poster: "npt:0:01",
    }) as Control;
    player.current = control;
    const timer = setInterval(() => void Promise.resolve(control.getCurrentTime()).then((second) => (typeof second === "number" ? onTime(second) : undefined)), 400);
    return () => {
      clearInterval(timer);
      player.current = null;
      control.dispose();
    };
  }, [recording.text, recording.width, recording.height, onTime]);
  useEffect(() => {
    if (seekTo != null) void player.current?.seek(seekTo);
  }, [seekTo]);
  return <div className="min-h-[420px] bg-terminal" ref={place} data-player />;
}
