/** What people add to a trial: a reviewed mark, tags, labels, notes; each with who and when. Nothing here changes a number. */

import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { useAct } from "@/api/act";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { FIELD } from "@/parts/field";
import { exact, plural } from "@/parts/format";
import { Moment } from "@/parts/Moment";
import { Trouble } from "@/parts/Notice";

type Triage = Schemas["TrialTriage"];

export function TriagePanel({ trial }: { trial: number }) {
  const triage = useQuery({
    queryKey: ["triage", trial],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}/triage", { params: { path: { trial_id: trial } } })),
  });
  const { busy, error, act } = useAct(["triage", trial]);
  const [open, setOpen] = useState(false);
  const of = { trial_id: trial };
  const { tags = [], labels = [], notes = [], reviewed } = triage.data ?? ({} as Partial<Triage>);
  return (
    <section aria-label="Triage" className="rounded-lg border bg-panel px-3 py-1.5 text-sm">
      <div className="flex min-h-7 flex-wrap items-center gap-2">
        <label className="inline-flex items-center gap-1.5" title={reviewed ? whoWhen(reviewed) : undefined}>
          <input
            type="checkbox"
            checked={!!reviewed}
            disabled={busy || !triage.data}
            onChange={(event) =>
              void act(() =>
                event.target.checked
                  ? api.PUT("/api/v1/trials/{trial_id}/reviewed", { params: { path: of } })
                  : api.DELETE("/api/v1/trials/{trial_id}/reviewed", { params: { path: of } }),
              )
            }
          />
          Reviewed
        </label>
        {tags.map((tag) => (
          <Chip
            key={tag.name}
            mark={tag}
            text={tag.name}
            onRemove={() =>
              void act(() =>
                api.DELETE("/api/v1/trials/{trial_id}/tags/{name}", { params: { path: { ...of, name: tag.name } } }),
              )
            }
          />
        ))}
        {labels.map((label) => (
          <Chip
            key={`${label.name}=`}
            mark={label}
            text={`${label.name}=${label.value}`}
            onRemove={() =>
              void act(() =>
                api.DELETE("/api/v1/trials/{trial_id}/labels/{name}", { params: { path: { ...of, name: label.name } } }),
              )
            }
          />
        ))}
        <AddMark
          busy={busy}
          onAdd={(text) => {
            const [name = "", value] = split(text);
            return act(() =>
              value
                ? api.PUT("/api/v1/trials/{trial_id}/labels/{name}", {
                    params: { path: { ...of, name } },
                    body: { value },
                  })
                : api.PUT("/api/v1/trials/{trial_id}/tags/{name}", { params: { path: { ...of, name } } }),
            );
          }}
        />
        <Button kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {notes.length ? plural(notes.length, "notes") : "Add a note"}
        </Button>
      </div>
      {error ? <Trouble error={error} /> : null}
      {open ? (
        <Notes
          notes={notes}
          busy={busy}
          onAdd={(text) =>
            act(() => api.POST("/api/v1/trials/{trial_id}/notes", { params: { path: of }, body: { text } }))
          }
          onDelete={(note_id) =>
            void act(() =>
              api.DELETE("/api/v1/trials/{trial_id}/notes/{note_id}", { params: { path: { ...of, note_id } } }),
            )
          }
        />
      ) : null}
    </section>
  );
}

/** `name=value` is a label, anything else a tag. */
function split(text: string): [string, string?] {
  const at = text.indexOf("=");
  return at < 0 ? [text.trim()] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

function whoWhen(of: { author: string; at: string }): string {
  return `${of.author}, ${exact(of.at)}`;
}

function Chip({ mark, text, onRemove }: { mark: Schemas["MarkItem"]; text: string; onRemove: () => void }) {
  return (
    <span
      title={whoWhen(mark)}
      className="inline-flex max-w-72 items-center gap-1 rounded-full bg-accent-soft px-2 py-0.5 text-xs text-accent"
    >
      <span className="truncate">{text}</span>
      <button type="button" aria-label={`Remove ${text}`} onClick={onRemove}>
        ×
      </button>
    </span>
  );
}

function AddMark({ busy, onAdd }: { busy: boolean; onAdd: (text: string) => Promise<boolean> }) {
  const [text, setText] = useState("");
  async function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() && (await onAdd(text))) setText("");
  }
  return (
    <form onSubmit={(event) => void submit(event)}>
      <input
        aria-label="Add a tag or name=value"
        placeholder="tag or name=value"
        value={text}
        disabled={busy}
        maxLength={260}
        onChange={(event) => setText(event.target.value)}
        className={`${FIELD} w-40`}
      />
    </form>
  );
}

function Notes({
  notes,
  busy,
  onAdd,
  onDelete,
}: {
  notes: Schemas["Note"][];
  busy: boolean;
  onAdd: (text: string) => Promise<boolean>;
  onDelete: (note: number) => void;
}) {
  const [text, setText] = useState("");
  async function submit(event: FormEvent) {
    event.preventDefault();
    if (await onAdd(text)) setText("");
  }
  return (
    <div className="flex flex-col gap-2 py-2">
      <ul aria-label="Notes" className="flex flex-col gap-2">
        {notes.map((note) => (
          <li key={note.id} className="rounded bg-raised px-2 py-1">
            <p className="break-words whitespace-pre-wrap">{note.text}</p>
            <p className="flex items-center gap-2 text-xs text-ink-soft">
              {note.author} · <Moment at={note.at} />
              <Button kind="quiet" disabled={busy} aria-label={`Delete note ${note.id}`} onClick={() => onDelete(note.id)}>
                Delete
              </Button>
            </p>
          </li>
        ))}
      </ul>
      <form onSubmit={(event) => void submit(event)} className="flex items-start gap-2">
        <textarea
          aria-label="Note"
          placeholder="What should others know about this trial?"
          value={text}
          rows={2}
          maxLength={10_000}
          onChange={(event) => setText(event.target.value)}
          className={`${FIELD} h-auto min-w-0 grow py-1`}
        />
        <Button type="submit" disabled={busy || !text.trim()}>
          Save note
        </Button>
      </form>
    </div>
  );
}
