/** The keyboard: `/` searches, `?` shows the keys, `g` and a letter goes places, Ctrl K opens the palette. */

import { useNavigate } from "@tanstack/react-router";
import { Dialog } from "radix-ui";
import { type ReactNode, useEffect, useRef, useState } from "react";

const KEYS: [string, string][] = [
  ["j / k", "next / previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["/", "search this list"],
  ["[ / ]", "previous / next trial of the job"],
  ["g j, g t, g b, g l, g w, g s", "go to jobs, tasks, leaderboard, launch, workers, settings"],
  ["Ctrl K or ⌘ K", "command palette"],
  ["?", "this list"],
];
const PLACES: Record<string, string> = { j: "/", t: "/tasks", b: "/leaderboard", l: "/launch", w: "/workers", s: "/settings" };

/**
 * `still`: there is nowhere to go, as in what a read-only link shows.
 *
 * After `g` the next key says where to, however long a slow machine or its user takes; any other key and a click end it.
 */
export function useKeys(openPalette: () => void, still = false): ReactNode {
  const [help, setHelp] = useState(false);
  const navigate = useNavigate();
  const going = useRef(false);
  useEffect(() => {
    function press(event: KeyboardEvent) {
      if (still) return;
      const goes = going.current;
      going.current = false;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette();
        return;
      }
      const target = event.target as HTMLElement;
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        target.closest("input, textarea, select, [contenteditable], .xterm")
      )
        return;
      if (goes && PLACES[event.key]) void navigate({ to: PLACES[event.key] });
      else if (event.key === "?") setHelp(true);
      else if (event.key === "/") focus(event, "[data-search]");
      else if ((event.key === "j" || event.key === "k") && !target.closest("[data-rows]")) focus(event, "[data-rows]");
      else if (event.key === "g") going.current = true;
    }
    function elsewhere() {
      going.current = false;
    }
    window.addEventListener("keydown", press);
    window.addEventListener("pointerdown", elsewhere);
    return () => {
      window.removeEventListener("keydown", press);
      window.removeEventListener("pointerdown", elsewhere);
    };
  }, [navigate, openPalette, still]);
  return (
    <Dialog.Root open={help} onOpenChange={setHelp}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-1/2 left-1/2 z-50 w-96 max-w-[92vw] -translate-1/2 rounded-lg border bg-panel p-4 shadow-xl"
        >
          <Dialog.Title className="mb-2">Keys</Dialog.Title>
          <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 text-sm">
            {KEYS.map(([key, what]) => [
              <dt key={key}>
                <kbd className="rounded border border-line-strong bg-raised px-1.5 font-mono text-xs">{key}</kbd>
              </dt>,
              <dd key={what}>{what}</dd>,
            ])}
          </dl>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function focus(event: KeyboardEvent, selector: string) {
  const found = document.querySelector<HTMLElement>(selector);
  if (!found) return;
  event.preventDefault();
  found.focus();
}
