import { useState } from "react";

import { Button } from "./Button";

/** Without a text there is nothing to copy yet; the button keeps its place. */
export function Copy({ text, children }: { text: string | undefined; children: string }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      disabled={text === undefined}
      onClick={() =>
        void navigator.clipboard.writeText(text ?? "").then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        })
      }
    >
      <span aria-live="polite">{done ? "Copied" : children}</span>
    </Button>
  );
}
