/** Asks for a token once the service says that it wants one. The token goes into a cookie that scripts cannot read. */

import { useQueryClient } from "@tanstack/react-query";
import { Dialog } from "radix-ui";
import { type FormEvent, useEffect, useState } from "react";

import { api } from "@/api/client";
import { problemOf } from "@/api/problem";
import { Button } from "@/parts/Button";
import { FIELD } from "@/parts/field";

export function SignIn() {
  const [open, setOpen] = useState(false);
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState("");
  const queries = useQueryClient();
  useEffect(() => {
    const ask = () => setOpen(true);
    window.addEventListener("seatrial:unauthenticated", ask);
    return () => window.removeEventListener("seatrial:unauthenticated", ask);
  }, []);
  async function submit(event: FormEvent) {
    event.preventDefault();
    try {
      await api.POST("/api/v1/session", { body: { token: token.trim() } });
      setOpen(false);
      setToken("");
      await queries.invalidateQueries();
    } catch (error) {
      setTrouble(problemOf(error).message);
    }
  }
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content className="fixed top-1/3 left-1/2 z-50 w-96 max-w-[92vw] -translate-1/2 rounded-lg border bg-panel p-4 shadow-xl">
          <Dialog.Title>Sign in</Dialog.Title>
          <Dialog.Description className="mt-1 text-sm text-ink-soft">
            This service asks for a token. Whoever runs it makes one with{" "}
            <code className="font-mono text-xs">seatrial token create</code>.
          </Dialog.Description>
          <form onSubmit={(event) => void submit(event)} className="mt-3 flex gap-2">
            <input
              type="password"
              aria-label="Token"
              autoComplete="off"
              className={`${FIELD} min-w-0 grow font-mono`}
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
            <Button kind="main" type="submit" disabled={!token.trim()}>
              Sign in
            </Button>
          </form>
          {trouble ? (
            <p role="alert" className="mt-2 text-sm text-failed">
              {trouble}
            </p>
          ) : null}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
