/** Drop one or many archives: checked first, added if all is well, and told where the problem is if not. */

import { useQueryClient } from "@tanstack/react-query";
import { type DragEvent, useRef, useState } from "react";

import type { Schemas } from "@/api/client";
import { upload } from "@/api/upload";
import { Button } from "@/parts/Button";
import { bytes } from "@/parts/format";
import { ProblemList, Trouble } from "@/parts/Notice";
import { StateShape } from "@/parts/State";

type Checked = Schemas["CheckedArchive"];
type Step = { kind: "checking" | "taking"; share: number } | null;

export function DropZone() {
  const input = useRef<HTMLInputElement>(null);
  const queries = useQueryClient();
  const [over, setOver] = useState(false);
  const [step, setStep] = useState<Step>(null);
  const [files, setFiles] = useState<File[]>([]);
  const [report, setReport] = useState<Checked[]>([]);
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState<unknown>();

  async function begin(chosen: File[]) {
    if (!chosen.length) return;
    setFiles(chosen);
    setReport([]);
    setTaken(new Set());
    setError(undefined);
    try {
      setStep({ kind: "checking", share: 0 });
      const checked = await upload<Schemas["CheckedArchives"]>("/api/v1/tasks/validate", chosen, (share) =>
        setStep({ kind: "checking", share }),
      );
      setReport(checked.items);
      const good = chosen.filter((_, index) => isGood(checked.items[index]));
      if (!good.length) return;
      setStep({ kind: "taking", share: 0 });
      const kept = await upload<Schemas["TakenArchives"]>("/api/v1/tasks", good, (share) =>
        setStep({ kind: "taking", share }),
      );
      setTaken(new Set(kept.items.filter((item) => !item.error).map((item) => item.filename)));
      await queries.invalidateQueries({ queryKey: ["tasks"] });
    } catch (fault) {
      setError(fault);
    } finally {
      setStep(null);
    }
  }

  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    void begin([...event.dataTransfer.files]);
  }

  return (
    <section
      aria-label="Upload tasks"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
      className={`rounded-lg border border-dashed px-4 py-3 ${over ? "border-accent bg-accent-soft" : "border-line-strong bg-panel"}`}
    >
      <div className="flex flex-wrap items-center gap-3">
        <Button onClick={() => input.current?.click()}>Choose archives</Button>
        <span className="text-sm text-ink-soft">
          or drop them here: <code className="font-mono text-xs">.zip</code> or{" "}
          <code className="font-mono text-xs">.tar.gz</code>, one task or a folder of them.
        </span>
        <input
          ref={input}
          type="file"
          multiple
          accept=".zip,.tar.gz,.tgz,application/zip,application/gzip"
          className="sr-only"
          aria-label="Archives"
          tabIndex={-1}
          onChange={(event) => {
            void begin([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      {step ? (
        <div className="mt-2 flex items-center gap-2 text-sm" role="status">
          <progress className="h-2 w-56" max={1} value={step.share} aria-label="Upload" />
          {step.kind === "checking" ? "Checking" : "Adding"} {files.length} archive{files.length > 1 ? "s" : ""} (
          {bytes(files.reduce((sum, file) => sum + file.size, 0))})
        </div>
      ) : null}
      {error ? <Trouble error={error} /> : null}
      {report.length ? (
        <ul className="mt-2 flex flex-col gap-2" aria-label="Validation report">
          {report.map((item, index) => (
            <Archive key={index} item={item} taken={taken.has(item.filename)} />
          ))}
        </ul>
      ) : null}
    </section>
  );
}

function isGood(item: Checked | undefined): boolean {
  return (
    !!item && !item.error && item.inspections.length > 0 && item.inspections.every((inspection) => inspection.valid)
  );
}

function verdictOf(item: Checked, good: boolean, taken: boolean): string {
  if (!good) return "rejected";
  if (item.inspections.every((inspection) => inspection.known)) return "already in library";
  return taken ? "added" : "valid";
}

function Archive({ item, taken }: { item: Checked; taken: boolean }) {
  const good = isGood(item);
  const problems = item.inspections.flatMap((inspection) => inspection.problems ?? []);
  return (
    <li className="text-sm">
      <span className="inline-flex items-center gap-1.5 font-medium">
        <StateShape of={good ? "passed" : "failed"} /> {item.filename}
      </span>{" "}
      <span className="text-ink-soft">
        {verdictOf(item, good, taken)}
        {good && problems.length ? `, ${problems.length} warning${problems.length > 1 ? "s" : ""}` : ""}
      </span>
      {item.error ? (
        <p className="text-failed">
          {item.error.message} {item.error.fix}
        </p>
      ) : null}
      {problems.length ? <ProblemList problems={problems} /> : null}
    </li>
  );
}
