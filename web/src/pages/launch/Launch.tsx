/** What × who × how, and a standing summary of what that will take before anything starts. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { useFilters } from "@/parts/Filters";
import { Trouble, Waiting } from "@/parts/Notice";
import { useTitle } from "@/parts/title";
import { Budget } from "./Budget";
import { cloneOf } from "./clone";
import { How } from "./How";
import { searchOf, wholeDigests, wishOf } from "./link";
import { Summary } from "./Summary";
import { useTasks } from "./tasks";
import { What } from "./What";
import { useAgents, Who } from "./Who";
import { lacking, requestOf, type Wish } from "./wish";

type Start = { wish: Wish; notice: string };

/** The form begins with what its address says: another job, or a form that somebody sent. */
export default function Launch() {
  useTitle("Launch");
  const [search] = useFilters();
  const [asked] = useState(search);
  const cloned = useQuery({
    queryKey: ["job", Number(asked.from), "clone"],
    queryFn: () =>
      unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: Number(asked.from) } } })).then(cloneOf),
    enabled: !!asked.from,
    staleTime: Infinity,
  });
  const tasks = useTasks();
  const start = useMemo((): Start | null => {
    const wish = asked.from ? cloned.data : wishOf(asked);
    if (!wish || (wish.tasks.length && !tasks.data)) return null;
    return lookedUp(wish, tasks.data?.map((task) => task.digest) ?? []);
  }, [asked, cloned.data, tasks.data]);
  if (cloned.error) return <Trouble error={cloned.error} />;
  if (tasks.error) return <Trouble error={tasks.error} retry={() => void tasks.refetch()} />;
  return start ? <Form start={start} from={asked.from} /> : <Waiting />;
}

function lookedUp(wish: Wish, known: string[]): Start {
  const { digests, unknown } = wholeDigests(wish.tasks, known);
  const few = unknown.slice(0, 5).join(", ") + (unknown.length > 5 ? ", …" : "");
  const notice = unknown.length && !wish.dataset ? `Not in the library, or the name of several tasks: ${few}.` : "";
  return { wish: { ...wish, tasks: wish.dataset ? [] : digests }, notice };
}

function Form({ start, from }: { start: Start; from: string | undefined }) {
  const navigate = useNavigate();
  const [wish, setWish] = useState(start.wish);
  const [keys, setKeys] = useState<Record<string, string>>({});
  const change = (part: Partial<Wish>) => setWish((old) => ({ ...old, ...part }));
  const settled = useSettled(wish, 300);
  // The address always opens the form as it is, so that it can be sent. A cloned job is named until something changes.
  useEffect(() => {
    if (settled !== start.wish)
      void navigate({ to: "/launch", search: searchOf(settled) as never, replace: true, resetScroll: false });
  }, [settled, start.wish, navigate]);
  const agents = useAgents();
  const ready = !lacking(settled, agents);
  const headers = keyHeaders(keys);
  const estimate = useQuery({
    queryKey: ["estimate", settled, Object.keys(keys).filter((name) => keys[name])],
    queryFn: () => unwrap(api.POST("/api/v1/jobs/estimate", { body: requestOf(settled), headers })),
    enabled: ready,
    placeholderData: (old) => old,
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
      <h1>{from ? `Launch job ${from} again` : "Launch a job"}</h1>
      {start.notice ? <p className="text-sm text-error">{start.notice}</p> : null}
      <div className="grid gap-3 lg:grid-cols-3">
        <What wish={wish} change={change} />
        <Who wish={wish} change={change} keys={keys} setKeys={setKeys} />
        <div className="flex flex-col gap-3">
          <How wish={wish} change={change} />
          <Budget wish={wish} change={change} />
        </div>
      </div>
      {launch.error ? <Trouble error={launch.error} /> : null}
      <Summary
        estimate={estimate.data}
        error={ready ? estimate.error : null}
        lacking={lacking(wish, agents)}
        wish={settled}
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
