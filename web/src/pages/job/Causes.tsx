import type { Schemas } from "@/api/client";

const WORDS: Record<string, string> = {
  llm: "model service",
  sandbox: "sandbox",
  image: "image",
  verifier: "verifier",
  worker_lost: "worker lost",
  agent: "agent crashed",
  replay: "not in the record",
};

/** Why trials could not be graded. Only a crash of the agent counts against it. */
export function Causes({ report }: { report: Schemas["JobReport"] | undefined }) {
  const errors = Object.entries(report?.counts.errors ?? {}).filter(([, number]) => number > 0);
  const marks = Object.entries(report?.counts.marks ?? {}).filter(([, number]) => number > 0);
  const most = Math.max(1, ...errors.map(([, number]) => number));
  if (!errors.length && !marks.length)
    return <p className="text-sm text-ink-soft">None{report?.complete === false ? " so far" : ""}.</p>;
  return (
    <div className="flex flex-col gap-2 text-sm">
      {errors.map(([cause, number]) => (
        <div key={cause} className="grid grid-cols-[7.5rem_1fr_2.5rem] items-center gap-2">
          <span>{WORDS[cause] ?? cause}</span>
          <span className="h-2 rounded-full bg-raised">
            <span className="block h-2 rounded-full bg-error" style={{ width: `${(100 * number) / most}%` }} />
          </span>
          <span className="text-right">{number}</span>
        </div>
      ))}
      {marks.length ? (
        <p className="text-xs text-ink-soft">
          marks: {marks.map(([mark, number]) => `${mark.replaceAll("_", " ")} ${number}`).join(" · ")}
        </p>
      ) : null}
    </div>
  );
}
