/** The status of a trial: a colour and a shape, so that nobody has to tell colours apart. */

export type TrialStatus = "passed" | "failed" | "error" | "cancelled" | "running" | "queued" | "held";

const WORDS: Record<TrialStatus, string> = {
  passed: "passed",
  failed: "failed",
  error: "error",
  cancelled: "cancelled",
  running: "running",
  queued: "queued",
  held: "not started",
};
const COLOURS: Record<TrialStatus, string> = {
  passed: "text-passed",
  failed: "text-failed",
  error: "text-error",
  cancelled: "text-cancelled",
  running: "text-running",
  queued: "text-queued",
  held: "text-queued",
};

export function statusOf(of: { state: string; outcome?: string | null }): TrialStatus {
  return (of.outcome ?? of.state) as TrialStatus;
}

export function StateShape({ of, size = 12 }: { of: TrialStatus; size?: number }) {
  return (
    <svg viewBox="0 0 12 12" width={size} height={size} className={`${COLOURS[of]} inline-block shrink-0`} aria-hidden>
      <Shape of={of} />
    </svg>
  );
}

function Shape({ of }: { of: TrialStatus }) {
  const stroke = { fill: "none", stroke: "currentColor", strokeWidth: 2, strokeLinecap: "round" as const };
  switch (of) {
    case "passed":
      return <circle cx="6" cy="6" r="5" fill="currentColor" />;
    case "failed":
      return <path d="M2 2l8 8M10 2l-8 8" {...stroke} />;
    case "error":
      return <path d="M6 1L11.5 11H.5z" fill="currentColor" />;
    case "cancelled":
      return <path d="M2 6h8" {...stroke} />;
    case "running":
      return (
        <g className="turning">
          <circle cx="6" cy="6" r="4.5" {...stroke} opacity=".25" />
          <path d="M6 1.5A4.5 4.5 0 0 1 10.5 6" {...stroke} />
        </g>
      );
    default:
      return (
        <circle cx="6" cy="6" r="4.3" {...stroke} strokeWidth={1.6} strokeDasharray={of === "held" ? "2 2.5" : ""} />
      );
  }
}

export function StateLabel({ of, note }: { of: TrialStatus; note?: string }) {
  return (
    <span className={`inline-flex items-center gap-1.5 align-bottom whitespace-nowrap ${COLOURS[of]}`}>
      <StateShape of={of} />
      {WORDS[of]}
      {note ? <span className="text-ink-faint">· {note}</span> : null}
    </span>
  );
}

export function JobStatus({ status }: { status: string }) {
  const as: Record<string, TrialStatus> = {
    pending: "queued",
    running: "running",
    completed: "passed",
    cancelled: "cancelled",
  };
  const shape = as[status] ?? "queued";
  const quiet = status === "completed";
  return (
    <span
      className={`inline-flex items-center gap-1.5 align-bottom whitespace-nowrap ${quiet ? "text-ink-soft" : COLOURS[shape]}`}
    >
      {quiet ? <span aria-hidden>✓</span> : <StateShape of={shape} />}
      {status}
    </span>
  );
}
