/** What else differs between the sides: configuration, versions, infrastructure, load, trouble. Loaded after the matrix. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, unwrap } from "@/api/client";
import { plural } from "@/parts/format";
import { Trouble, Waiting } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import type { Wish } from "./wish";

export function Circumstances({ wish }: { wish: Wish }) {
  const [all, setAll] = useState(false);
  const found = useQuery({
    queryKey: ["compare", "circumstances", wish],
    queryFn: () => unwrap(api.GET("/api/v1/compare/circumstances", { params: { query: wish as never } })),
    placeholderData: (old) => old,
  });
  const shown = found.data?.traits.filter((trait) => all || trait.differs) ?? [];
  const read = found.data?.sides.reduce((sum, side) => sum + side.sampled, 0) ?? 0;
  return (
    <Panel
      title="What else differs"
      minHeight={120}
      flush
      side={
        <label className="inline-flex items-center gap-1.5 text-xs text-ink-soft">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
          also what is the same
        </label>
      }
    >
      {found.error ? <Trouble error={found.error} /> : null}
      {found.isPending ? <Waiting rows={3} /> : null}
      {found.data?.noise?.length ? (
        <ul aria-label="Infrastructure noise" className="px-3 pt-3 text-sm text-error">
          {found.data.noise.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      ) : null}
      {found.data && !shown.length ? (
        <p className="p-3 text-sm text-ink-soft">Nothing else differs in what is known of the sides.</p>
      ) : null}
      {found.data && shown.length ? (
        <div
          className="relative overflow-x-auto p-3"
          tabIndex={0}
          role="region"
          aria-label="What else differs, scrolls sideways"
        >
          <table className="w-full text-sm" aria-label="circumstances">
            <thead>
              <tr className="text-left text-xs text-ink-soft">
                <th scope="col" className="pr-4 font-medium">
                  What
                </th>
                {found.data.sides.map((side) => (
                  <th key={`${side.job} ${side.configuration}`} scope="col" className="pr-4 font-medium">
                    {side.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((trait) => (
                <tr key={`${trait.kind} ${trait.name}`} className="border-t align-baseline">
                  <th scope="row" className="py-1 pr-4 text-left font-normal">
                    {trait.name} <span className="text-xs text-ink-faint">{trait.kind}</span>
                  </th>
                  {trait.values.map((value, place) => (
                    <td key={place} className="max-w-md py-1 pr-4 break-words">
                      {value || "–"}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {read ? (
        <p className="px-3 pb-3 text-xs text-ink-soft">
          Versions and infrastructure are those of {plural(read, "sampled trials")}.
        </p>
      ) : null}
    </Panel>
  );
}
