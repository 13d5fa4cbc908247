/** The trials behind one cell: attempt by attempt, what flipped, and the way to both and to their side-by-side view. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, type Schemas, unwrap } from "@/api/client";
import { count, duration, money, plural } from "@/parts/format";
import { Trouble, Waiting } from "@/parts/Notice";
import { StateLabel, statusOf } from "@/parts/State";
import type { Comparison } from "./wish";

type Pair = Schemas["AttemptPair"];
type Side = Schemas["PairedTrial"] | null | undefined;

type Props = {
  task: string;
  item: Comparison;
  baseline: string;
  other: string;
  /** What the comparison's address says, for the way back. */
  back: Record<string, string | undefined>;
};

export function CellPairs({ task, item, baseline, other, back }: Props) {
  const found = useQuery({
    queryKey: ["compare", "pairs", baseline, other, task],
    queryFn: () => unwrap(api.GET("/api/v1/compare/pairs", { params: { query: { baseline, other, task } } })),
  });
  return (
    <section aria-label={`Trials of ${task}`} className="border-t p-3">
      <h2 className="mb-2 break-words">
        {task}{" "}
        <span className="font-normal text-ink-soft">
          · {item.label_b} against {item.label_a}
        </span>
      </h2>
      {found.error ? <Trouble error={found.error} /> : null}
      {found.isPending ? <Waiting rows={3} /> : null}
      {found.data ? (
        <>
          <div className="relative overflow-x-auto" tabIndex={0} role="region" aria-label="Attempts, scrolls sideways">
            <table className="w-full text-sm" aria-label="attempts">
              <thead>
                <tr className="text-left text-xs text-ink-soft">
                  {["Attempt", `A: ${item.label_a}`, `B: ${item.label_b}`, "Tests that flipped", ""].map((name) => (
                    <th key={name} scope="col" className="py-1 pr-4 font-medium whitespace-nowrap">
                      {name || <span className="sr-only">Side by side</span>}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {found.data.pairs.map((pair) => (
                  <PairRow key={(pair.a ?? pair.b)?.trial} pair={pair} back={back} />
                ))}
              </tbody>
            </table>
          </div>
          {found.data.left_off ? (
            <p className="mt-2 text-xs text-ink-soft">
              {plural(found.data.left_off, "further attempts")} are not listed.
            </p>
          ) : null}
          <TestShares shares={found.data.tests} />
        </>
      ) : null}
    </section>
  );
}

function PairRow({ pair, back }: { pair: Pair; back: Props["back"] }) {
  const one = pair.a ?? pair.b;
  const flips = pair.flips ?? [];
  return (
    <tr className="border-t align-baseline">
      <td className="py-1 pr-4 whitespace-nowrap">
        {one?.attempt} of {one?.attempts}
      </td>
      <TrialCell of={pair.a} />
      <TrialCell of={pair.b} />
      <td className="max-w-md py-1 pr-4">
        {flips.length ? (
          <ul>
            {flips.slice(0, 5).map((flip) => (
              <li key={flip.name} className="break-words">
                <code className="font-mono text-xs">{flip.name}</code>: {flip.left ?? "not run"} →{" "}
                {flip.right ?? "not run"}
              </li>
            ))}
            {flips.length > 5 ? <li className="text-ink-soft">and {flips.length - 5} more</li> : null}
          </ul>
        ) : (
          <span className="text-ink-soft">none</span>
        )}
      </td>
      <td className="py-1 text-right whitespace-nowrap">
        {pair.a && pair.b ? (
          <Link
            to="/compare"
            search={{ ...back, left: String(pair.a.trial), right: String(pair.b.trial) } as never}
            aria-label={`Attempt ${one?.attempt} side by side`}
            className="text-accent"
          >
            side by side
          </Link>
        ) : null}
      </td>
    </tr>
  );
}

function TrialCell({ of }: { of: Side }) {
  if (!of) return <td className="py-1 pr-4 text-ink-soft">none</td>;
  const took = [
    of.outcome === "error" ? of.cause : null,
    of.seconds != null ? duration(of.seconds) : null,
    of.tokens != null ? `${count(of.tokens)} tokens` : null,
    of.cost_usd != null ? money(of.cost_usd) : null,
    ...of.marks.map((mark) => mark.replaceAll("_", " ")),
  ];
  return (
    <td className="py-1 pr-4">
      <Link to="/trials/$trial" params={{ trial: String(of.trial) }} className="no-underline hover:underline">
        <StateLabel of={statusOf(of)} note={`trial ${of.trial}`} />
      </Link>
      <div className="text-xs text-ink-soft">{took.filter(Boolean).join(" · ")}</div>
    </td>
  );
}

function TestShares({ shares }: { shares: Schemas["TestShare"][] }) {
  if (!shares.length) return null;
  return (
    <div className="relative mt-3 overflow-x-auto" tabIndex={0} role="region" aria-label="Tests, scrolls sideways">
      <table className="text-sm" aria-label="tests of both sides">
        <thead>
          <tr className="text-left text-xs text-ink-soft">
            <th scope="col" className="py-1 pr-4 font-medium">
              Test
            </th>
            <th scope="col" className="py-1 pr-4 text-right font-medium">
              passed in A
            </th>
            <th scope="col" className="py-1 text-right font-medium">
              passed in B
            </th>
          </tr>
        </thead>
        <tbody>
          {shares.slice(0, 50).map((test) => (
            <tr key={test.name} className="border-t">
              <td className="py-0.5 pr-4 font-mono text-xs break-all">{test.name}</td>
              <td className="py-0.5 pr-4 text-right">
                {test.passed_a} of {test.run_a}
              </td>
              <td className="py-0.5 text-right">
                {test.passed_b} of {test.run_b}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shares.length > 50 ? <p className="mt-1 text-xs text-ink-soft">and {shares.length - 50} more tests</p> : null}
    </div>
  );
}
