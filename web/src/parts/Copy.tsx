import { useState } from "react";

import { Button } from "./Button";

export function Copy({ text, children }: { text: string; children: string }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      onClick={() =>
        void navigator.clipboard.writeText(text).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        })
      }
    >
      <span aria-live="polite">{done ? "Copied" : children}</span>
    </Button>
  );
}
