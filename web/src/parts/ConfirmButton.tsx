import { type ReactNode, useRef } from "react";

import { Button } from "./Button";

type Props = {
  children: ReactNode;
  /** What will happen, and what cannot be taken back. */
  question: string;
  /** The button that does it: a verb and its object. */
  verb: string;
  onConfirm: () => void;
  disabled?: boolean;
  title?: string;
  "aria-label"?: string;
  kind?: "plain" | "danger" | "quiet";
};

/** A button for what cannot be undone. It asks first; Escape and "Keep it" change nothing. */
export function ConfirmButton({ children, question, verb, onConfirm, ...button }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = () => dialog.current?.close();
  return (
    <>
      <Button {...button} onClick={() => dialog.current?.showModal()}>
        {children}
      </Button>
      <dialog
        ref={dialog}
        aria-label={verb}
        className="m-auto max-w-md rounded-lg border bg-panel p-4 text-ink shadow-lg backdrop:bg-black/40"
      >
        <p className="mb-4 text-sm whitespace-pre-line">{question}</p>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={close}>Keep it</Button>
          <Button
            kind="danger"
            onClick={() => {
              close();
              onConfirm();
            }}
          >
            {verb}
          </Button>
        </div>
      </dialog>
    </>
  );
}
