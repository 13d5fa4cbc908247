import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { api, unwrap } from "@/api/client";
import { FIELD } from "@/parts/field";
import { Panel } from "@/parts/Panel";
import type { Wish } from "./wish";

/** The default maximum of a job that stops when settled, as at the command line. */
const SETTLED_ATTEMPTS = 5;
const WIDE = `${FIELD} w-full`;

export function How({ wish, change }: { wish: Wish; change: (part: Partial<Wish>) => void }) {
  const sandboxes = useQuery({ queryKey: ["sandboxes"], queryFn: () => unwrap(api.GET("/api/v1/sandboxes")) });
  return (
    <Panel title="Options">
      <div className="flex flex-col gap-2.5">
        <Field name="Name">
          <input
            className={WIDE}
            value={wish.name}
            placeholder="optional"
            onChange={(event) => change({ name: event.target.value })}
          />
        </Field>
        <Field name={wish.untilSettled ? "Attempts at each task, at most" : "Attempts at each task"}>
          <input
            className={WIDE}
            type="number"
            min={1}
            max={1000}
            value={wish.attempts}
            onChange={(event) => change({ attempts: Math.max(1, Number(event.target.value) || 1) })}
          />
        </Field>
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={wish.untilSettled}
            onChange={(event) =>
              change({
                untilSettled: event.target.checked,
                ...(event.target.checked && wish.attempts === 1 ? { attempts: SETTLED_ATTEMPTS } : {}),
              })
            }
          />{" "}
          Stop when settled which of two configurations is better
        </label>
        {wish.untilSettled ? (
          <div className="grid grid-cols-2 gap-2.5">
            <Field name="Margin, points">
              <input
                className={WIDE}
                type="number"
                min={0.1}
                max={100}
                step={0.1}
                value={wish.margin}
                onChange={(event) => change({ margin: event.target.value })}
              />
            </Field>
            <Field name="Alpha">
              <input
                className={WIDE}
                type="number"
                min={0.001}
                max={0.5}
                step={0.001}
                value={wish.alpha}
                onChange={(event) => change({ alpha: event.target.value })}
              />
            </Field>
          </div>
        ) : null}
        <Field name="Trials at once">
          <input
            className={WIDE}
            type="number"
            min={1}
            placeholder="up to the workers' capacity"
            value={wish.concurrency}
            onChange={(event) => change({ concurrency: event.target.value })}
          />
        </Field>
        <Field name="Sandbox">
          <select className={WIDE} value={wish.sandbox} onChange={(event) => change({ sandbox: event.target.value })}>
            {[
              "auto",
              ...(sandboxes.data?.items.map((sandbox) => sandbox.name).filter((name) => name !== "auto") ?? []),
            ].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        <Field name="Time limits ×">
          <input
            className={WIDE}
            type="number"
            min={0.1}
            step={0.1}
            value={wish.timeoutMultiplier}
            onChange={(event) => change({ timeoutMultiplier: event.target.value })}
          />
        </Field>
        <Field name="Max retries after infrastructure errors">
          <input
            className={WIDE}
            type="number"
            min={0}
            max={99}
            value={wish.maxRetries}
            onChange={(event) => change({ maxRetries: event.target.value })}
          />
        </Field>
        <Field name="Agent options">
          <input
            className={`${WIDE} font-mono`}
            value={wish.options}
            placeholder="temperature=0.2 max_turns=30"
            onChange={(event) => change({ options: event.target.value })}
          />
        </Field>
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={wish.forceBuild}
            onChange={(event) => change({ forceBuild: event.target.checked })}
          />{" "}
          Build images even where one is pinned
        </label>
      </div>
    </Panel>
  );
}

function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    <label className="text-sm">
      <span className="text-ink-soft">{name}</span>
      {children}
    </label>
  );
}
