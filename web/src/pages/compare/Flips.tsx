import type { Schemas } from "@/api/client";

/** Tests with different results in two trials. */
export function Flips({ flips }: { flips: Schemas["TestFlip"][] }) {
  return (
    <section aria-label="Tests that flipped">
      <h3 className="text-sm font-semibold">Tests that flipped</h3>
      {flips.length ? (
        <ul className="mt-1">
          {flips.map((flip) => (
            <li key={flip.name} className="break-words">
              <code className="font-mono text-xs">{flip.name}</code>: {flip.left ?? "not run"} →{" "}
              {flip.right ?? "not run"}
            </li>
          ))}
        </ul>
      ) : (
        <p className="text-ink-soft">None.</p>
      )}
    </section>
  );
}
