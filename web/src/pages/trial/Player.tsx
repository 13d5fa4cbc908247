import "asciinema-player/dist/bundle/asciinema-player.css";

import * as Asciinema from "asciinema-player";
import { useEffect, useRef } from "react";

import type { Recording } from "./recording";
import { boxOf, isTall } from "./box";

type Control = { dispose(): void; seek(to: number): Promise<unknown>; getCurrentTime(): Promise<number> | number };

/** The recording with its seek bar. It moves when somebody points at a moment, and tells where it is. */
export default function Player({
  recording,
  goal,
  onTime,
  name = "Recording",
}: {
  recording: Recording;
  goal: { second: number } | null;
  onTime: (second: number) => void;
  name?: string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const player = useRef<Control | null>(null);
  // Who listens may change while it plays; the player goes on.
  const tell = useRef(onTime);
  tell.current = onTime;
  const { text, width, height, clock, length } = recording;
  // The screen at the end tells most, until somebody asks for another moment. The player shows nothing when it seeks from
  // a poster, so it begins again without one.
  const posed = goal == null;
  useEffect(() => {
    if (!place.current || !text) return undefined;
    const control = Asciinema.create({ data: text }, place.current, {
      fit: isTall({ width, height }) ? "both" : "width",
      poster: posed ? `npt:${(length + 1).toFixed(2)}` : undefined,
      cols: width,
      rows: height,
      preload: true,
      controls: true,
    }) as Control;
    player.current = control;
    const timer = setInterval(
      () =>
        void Promise.resolve(control.getCurrentTime()).then((second) =>
          typeof second === "number" ? tell.current(clock.toReal(second)) : undefined,
        ),
      250,
    );
    return () => {
      clearInterval(timer);
      player.current = null;
      control.dispose();
    };
  }, [text, width, height, clock, length, posed]);
  useEffect(() => {
    if (goal) void player.current?.seek(clock.toPlayer(goal.second));
  }, [goal, clock]);
  return (
    <div
      className="overflow-hidden bg-[#121314]"
      style={boxOf(recording)}
      ref={place}
      data-player
      tabIndex={0}
      role="region"
      aria-label={name}
    />
  );
}
