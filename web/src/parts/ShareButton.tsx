/** A read-only link to one job or one trial: made, copied once, listed and revoked. */

import { useQuery } from "@tanstack/react-query";
import { Dialog } from "radix-ui";
import { useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "./Button";
import { Copy } from "./Copy";
import { FIELD } from "./field";
import { exact } from "./format";
import { Trouble } from "./Notice";

const SPANS: [string, string][] = [
  ["1d", "a day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
];

/** `job` names the job of the trial, too: links are listed by job. */
export function ShareButton({ job, trial }: { job: number; trial?: number }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger asChild>
        <Button>Share …</Button>
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content className="fixed top-1/4 left-1/2 z-50 w-[34rem] max-w-[94vw] -translate-x-1/2 rounded-lg border bg-panel p-4 shadow-xl">
          <Dialog.Title>Read-only link</Dialog.Title>
          <Dialog.Description className="mt-1 text-sm text-ink-soft">
            Whoever has the link sees {trial ? `trial ${trial}` : `job ${job}`} with its configuration, logs and files,
            and nothing else. Notes and tags are not shown.
          </Dialog.Description>
          <Links job={job} trial={trial} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Links({ job, trial }: { job: number; trial: number | undefined }) {
  const [expires, setExpires] = useState("7d");
  const [made, setMade] = useState<Schemas["LinkMade"]>();
  const links = useQuery({
    queryKey: ["links", job],
    queryFn: () => unwrap(api.GET("/api/v1/links", { params: { query: { job } } })),
  });
  const { busy, error, act } = useAct(["links", job]);
  const mine = links.data?.items.filter((link) => link.valid && link.trial_id === (trial ?? null)) ?? [];
  const body = trial ? { trial, expires } : { job, expires };
  const address = made ? `${window.location.origin}${made.path}` : "";
  return (
    <div className="mt-3 flex flex-col gap-3 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <label className="inline-flex items-center gap-1.5">
          Valid for
          <select className={FIELD} value={expires} onChange={(event) => setExpires(event.target.value)}>
            {SPANS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Button
          kind="main"
          disabled={busy}
          onClick={() => void act(async () => setMade(await unwrap(api.POST("/api/v1/links", { body }))))}
        >
          Create link
        </Button>
      </div>
      {made ? (
        <div role="status" className="flex items-center gap-2 rounded bg-raised p-2">
          <code className="min-w-0 grow font-mono text-xs break-all" data-link>
            {address}
          </code>
          <Copy text={address}>Copy</Copy>
        </div>
      ) : null}
      {made ? <p className="text-xs text-ink-soft">It is shown only now.</p> : null}
      {error ? <Trouble error={error} /> : null}
      {mine.length ? (
        <ul aria-label="Links" className="flex max-h-48 flex-col gap-1 overflow-auto">
          {mine.map((link) => (
            <li key={link.id} className="flex items-center justify-between gap-2">
              <span>
                link {link.id} of {link.author}, until {exact(link.expires_at)}
              </span>
              <Button
                kind="danger"
                disabled={busy}
                onClick={() =>
                  void act(() => api.DELETE("/api/v1/links/{link_id}", { params: { path: { link_id: link.id } } }))
                }
              >
                Revoke
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
