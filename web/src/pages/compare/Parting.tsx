import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import { Trouble, Waiting } from "@/parts/Notice";

/** Test flips of two trials, and the first step in which they did something else. */
export function Parting({ left, right }: { left: number; right: number }) {
  const found = useQuery({
    queryKey: ["parting", left, right],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/trials/{trial_id}/diverges-from/{other_id}", {
          params: { path: { trial_id: left, other_id: right } },
        }),
      ),
    retry: false,
  });
  if (found.error) return <Trouble error={found.error} />;
  if (!found.data) return <Waiting rows={2} />;
  const flips = found.data.tests.filter((test) => test.left !== test.right);
  return (
    <div className="mt-3 flex flex-col gap-3 text-sm">
      <p>
        {found.data.step == null
          ? found.data.steps_left || found.data.steps_right
            ? "Both took the same steps."
            : "Neither left a trajectory."
          : `They part at step ${found.data.step} (of ${found.data.steps_left} and ${found.data.steps_right}).`}
      </p>
      {found.data.step == null ? null : (
        <div className="grid gap-3 md:grid-cols-2">
          <Side name={`trial ${left}`} step={found.data.left} />
          <Side name={`trial ${right}`} step={found.data.right} />
        </div>
      )}
      <div>
        <h2>Test flips</h2>
        {flips.length ? (
          <ul className="mt-1">
            {flips.map((flip) => (
              <li key={flip.name}>
                <code className="font-mono text-xs">{flip.name}</code>: {flip.left ?? "not run"} →{" "}
                {flip.right ?? "not run"}
              </li>
            ))}
          </ul>
        ) : (
          <p className="text-ink-soft">None.</p>
        )}
      </div>
    </div>
  );
}

function Side({ name, step }: { name: string; step: Schemas["StepView"] | null | undefined }) {
  return (
    <div className="min-w-0 rounded-md border p-2">
      <div className="text-xs text-ink-faint">{name}</div>
      {step ? (
        <>
          <p className="break-words whitespace-pre-wrap">{step.message}</p>
          {step.actions.map((action, index) => (
            <pre
              key={index}
              className="mt-1 overflow-auto rounded bg-raised p-2 font-mono text-xs whitespace-pre-wrap"
              tabIndex={0}
            >
              {action}
            </pre>
          ))}
        </>
      ) : (
        <p className="text-ink-soft">It had already ended.</p>
      )}
    </div>
  );
}
