/** What × who × how, and a standing summary of what that will take before anything starts. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { useFilters } from "@/parts/Filters";
import { Trouble } from "@/parts/Notice";
import { useTitle } from "@/parts/title";
import { How } from "./How";
import { Summary } from "./Summary";
import { What } from "./What";
import { useAgents, Who } from "./Who";
import { EMPTY, lacking, requestOf, type Wish } from "./wish";

export default function Launch() {
  useTitle("Launch");
  const [filters] = useFilters();
  const navigate = useNavigate();
  const [wish, setWish] = useState<Wish>(() => ({
    ...EMPTY,
    tasks: filters.tasks ? filters.tasks.split(",") : [],
    dataset: filters.dataset ?? "",
  }));
  const [keys, setKeys] = useState<Record<string, string>>({});
  const change = (part: Partial<Wish>) => setWish((old) => ({ ...old, ...part }));
  const settled = useSettled(wish, 300);
  const agents = useAgents();
  const ready = !lacking(settled, agents);
  const headers = keyHeaders(keys);
  const estimate = useQuery({
    queryKey: ["estimate", settled, Object.keys(keys).filter((name) => keys[name])],
    queryFn: () => unwrap(api.POST("/api/v1/jobs/estimate", { body: requestOf(settled), headers })),
    enabled: ready,
    placeholderData: (old) => old,
    retry: false,
  });
  const launch = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST("/api/v1/jobs", {
          body: requestOf(wish),
          headers: { ...headers, "Idempotency-Key": crypto.randomUUID() } as never,
        }),
      ),
    onSuccess: (job: Schemas["JobItem"]) => void navigate({ to: "/jobs/$job", params: { job: String(job.id) } }),
  });
  return (
    <div className="flex flex-col gap-3 pb-56 sm:pb-40">
      <h1>Launch a job</h1>
      <div className="grid gap-3 lg:grid-cols-3">
        <What wish={wish} change={change} />
        <Who wish={wish} change={change} keys={keys} setKeys={setKeys} />
        <How wish={wish} change={change} />
      </div>
      {launch.error ? <Trouble error={launch.error} /> : null}
      <Summary
        estimate={estimate.data}
        error={ready ? estimate.error : null}
        lacking={lacking(wish, agents)}
        busy={launch.isPending}
        onLaunch={() => launch.mutate()}
      />
    </div>
  );
}

/** Keys travel in a header of this request alone: not in the address, not in the body, not in the page's storage. */
function keyHeaders(keys: Record<string, string>): Record<string, string> {
  const given = Object.entries(keys).filter(([, value]) => value.trim());
  return given.length ? { "X-Provider-Key": given.map(([name, value]) => `${name}=${value.trim()}`).join(", ") } : {};
}

function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
