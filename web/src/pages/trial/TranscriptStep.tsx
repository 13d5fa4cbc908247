/** One step of the transcript, with the prompt and the answer of its model call where the agent kept them. */

import { useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";

import { withAccess } from "@/api/access";
import { Button } from "@/parts/Button";
import { count, money } from "@/parts/format";
import { Trouble, Waiting } from "@/parts/Notice";
import { fileUrl, keyOf, type Try } from "./files";
import { type Match, type Part, partsOf, patternOf } from "./matches";
import { type Step, title } from "./steps";

/** More of one text is shown when somebody asks for it. */
const SHOWN = 20_000;
const RAW_BYTES = 256 << 10;

type Props = {
  step: Step;
  of: Try;
  files: string[];
  /** The number of its model call. */
  call: number | undefined;
  open: boolean;
  onToggle: (number: number) => void;
  searched: string;
  current: Match | null;
};

export const TranscriptStep = memo(function TranscriptStep(props: Props) {
  const { step, open, onToggle, searched, current } = props;
  return (
    <section aria-label={`Step ${step.number}`} data-transcript={step.number}>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => onToggle(step.number)}
        className="flex w-full items-baseline gap-2 bg-raised px-3 py-1 text-left text-sm"
      >
        <span className="w-8 shrink-0 text-xs text-ink-faint">{step.number}</span>
        <span className="shrink-0 text-xs font-semibold text-ink-soft">{step.source}</span>
        <span className="min-w-0 grow truncate text-xs text-ink-soft">{open ? "" : title(step)}</span>
        <span className="shrink-0 text-xs text-ink-faint">
          {step.inputTokens ? `${count(step.inputTokens)} in, ${count(step.outputTokens)} out` : ""}
          {step.cost ? ` · ${money(step.cost)}` : ""}
        </span>
      </button>
      {open ? (
        <div className="flex flex-col gap-2 px-3 py-2 text-sm">
          {partsOf(step).map((part, index) => (
            <Text key={index} part={part} searched={searched} nth={current?.part === index ? current.nth : null} />
          ))}
          <RawCall {...props} />
        </div>
      ) : null}
    </section>
  );
});

function Text({ part, searched, nth }: { part: Part; searched: string; nth: number | null }) {
  const [whole, setWhole] = useState(false);
  const text = whole || nth != null ? part.text : part.text.slice(0, SHOWN);
  return (
    <div className="min-w-0">
      <div className="text-xs text-ink-faint">{part.name}</div>
      <div
        className={`break-words whitespace-pre-wrap ${part.mono ? "rounded bg-raised p-2 font-mono text-xs" : "max-w-[110ch]"}`}
      >
        <Marked text={text} searched={searched} nth={nth} />
      </div>
      {text.length < part.text.length ? (
        <Button kind="quiet" onClick={() => setWhole(true)}>
          Show all {count(part.text.length)} characters
        </Button>
      ) : null}
    </div>
  );
}

function Marked({ text, searched, nth }: { text: string; searched: string; nth: number | null }) {
  const pattern = patternOf(searched);
  if (!pattern) return <>{text}</>;
  const pieces: React.ReactNode[] = [];
  let [from, seen] = [0, 0];
  for (const found of text.matchAll(pattern)) {
    pieces.push(text.slice(from, found.index));
    pieces.push(
      <mark
        key={seen}
        data-current={seen === nth || undefined}
        className={seen === nth ? "bg-accent text-on-accent" : "bg-error-soft text-ink"}
      >
        {found[0]}
      </mark>,
    );
    from = found.index + found[0].length;
    seen += 1;
  }
  return (
    <>
      {pieces}
      {text.slice(from)}
    </>
  );
}

/** What went to the model and came back, word for word; and the step as the agent recorded it. */
function RawCall({ step, of, files, call }: Props) {
  const [shown, setShown] = useState<string | null>(null);
  const folder = new RegExp(`(^|/)agent/episode-${call ?? "none"}/(prompt\\.txt|response\\.txt|debug\\.json)$`);
  const kept = files.filter((path) => folder.test(path));
  const names = [...kept, ...(step.raw ? [RECORDED] : [])];
  if (!names.length) return null;
  return (
    <div className="min-w-0">
      <div className="flex flex-wrap gap-1" role="group" aria-label={`Raw data of step ${step.number}`}>
        {names.map((name) => (
          <Button
            key={name}
            kind="quiet"
            aria-pressed={shown === name}
            onClick={() => setShown((old) => (old === name ? null : name))}
          >
            {WORDS[name.split("/").at(-1) ?? ""] ?? name}
          </Button>
        ))}
      </div>
      {shown === RECORDED ? <Raw text={JSON.stringify(step.raw, null, 2)} name="recorded step" /> : null}
      {shown && shown !== RECORDED ? <RawFile of={of} path={shown} /> : null}
    </div>
  );
}

const RECORDED = "recorded";
const WORDS: Record<string, string> = {
  "prompt.txt": "Prompt",
  "response.txt": "Raw answer",
  "debug.json": "Raw call",
  [RECORDED]: "Recorded step",
};

function RawFile({ of, path }: { of: Try; path: string }) {
  const url = fileUrl(of.trial, path, of.tryNumber ?? of.tries);
  const text = useQuery({
    queryKey: [...keyOf(of, "raw"), path],
    queryFn: async () => {
      const answer = await fetch(url, { headers: withAccess({ Range: `bytes=0-${RAW_BYTES - 1}` }) });
      if (!answer.ok) throw new Error(`The file could not be read (${answer.status}).`);
      return answer.text();
    },
    staleTime: Infinity,
  });
  if (text.error) return <Trouble error={text.error} />;
  if (text.data == null) return <Waiting rows={2} />;
  return <Raw text={text.data} name={WORDS[path.split("/").at(-1) ?? ""] ?? path} />;
}

function Raw({ text, name }: { text: string; name: string }) {
  return (
    <pre
      className="max-h-96 overflow-auto rounded bg-raised p-2 font-mono text-xs break-words whitespace-pre-wrap"
      tabIndex={0}
      role="region"
      aria-label={name}
    >
      {text}
    </pre>
  );
}
