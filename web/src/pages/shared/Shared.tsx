/** What a read-only link shows: one job or one trial. The link is the fragment of the address, which no server gets. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { openLink } from "@/api/access";
import { api, unwrap } from "@/api/client";
import { exact } from "@/parts/format";
import { useFilters } from "@/parts/Filters";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { useTitle } from "@/parts/title";
import { SharedJob } from "./SharedJob";
import { SharedTrial } from "./SharedTrial";

export default function Shared() {
  const { hash } = useLocation();
  const queries = useQueryClient();
  const [secret] = useState(() => hash || window.location.hash.slice(1));
  const [ready, setReady] = useState(false);
  const [filters] = useFilters();
  useTitle("Shared");
  useEffect(() => {
    openLink(secret);
    setReady(secret !== "");
    return () => {
      openLink("");
      queries.clear();
    };
  }, [secret, queries]);
  const opened = useQuery({
    queryKey: ["shared"],
    queryFn: () => unwrap(api.GET("/api/v1/shared")),
    enabled: ready,
  });
  if (!secret) return <Empty>This address has no link. Ask for the whole address, with what follows the #.</Empty>;
  if (opened.error) return <Trouble error={opened.error} />;
  if (!opened.data) return <Waiting rows={10} />;
  const { job_id, trial_id, expires_at } = opened.data;
  const trial = trial_id ?? (Number(filters.trial) || null);
  return (
    <div className="flex flex-col gap-3">
      <p role="note" className="rounded-md bg-raised px-3 py-1 text-sm text-ink-soft">
        A read-only link to {trial_id ? `trial ${trial_id}` : `job ${job_id}`}, valid until {exact(expires_at)}.
      </p>
      {trial ? (
        <SharedTrial key={trial} id={trial} secret={secret} ofJob={trial_id == null} />
      ) : (
        <SharedJob id={job_id} secret={secret} />
      )}
    </div>
  );
}
