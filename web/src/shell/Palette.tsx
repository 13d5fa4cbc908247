/** Ctrl K: go anywhere by typing its name or number. Jobs and tasks are searched by the service, so that old ones are found. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useDeferredValue, useState } from "react";

import { api, unwrap } from "@/api/client";
import { configuration } from "@/parts/format";

const PLACES: [string, string][] = [
  ["Jobs", "/jobs"],
  ["Tasks", "/tasks"],
  ["Launch a job", "/launch"],
  ["Compare jobs", "/compare"],
  ["Leaderboard", "/leaderboard"],
  ["Workers and queue", "/workers"],
  ["Settings", "/settings"],
];

export default function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState("");
  const number = /^#?\d+$/.test(typed.trim()) ? Number(typed.trim().replace("#", "")) : null;
  const name = useDeferredValue(number == null ? typed.trim() : "");
  const jobs = useQuery({
    queryKey: ["palette-jobs", name],
    queryFn: () => unwrap(api.GET("/api/v1/jobs", { params: { query: { limit: 10, name: name || undefined } } })),
    placeholderData: (old) => old,
  });
  const tasks = useQuery({
    queryKey: ["palette-tasks", name],
    queryFn: () => unwrap(api.GET("/api/v1/tasks", { params: { query: { limit: 10, latest: true, q: name || undefined } } })),
    placeholderData: (old) => old,
  });
  // Trials have no names: those of the task that was found first are offered, newest first.
  const task = name ? tasks.data?.items[0]?.name : undefined;
  const trials = useQuery({
    queryKey: ["palette-trials", task],
    queryFn: () => unwrap(api.GET("/api/v1/trials", { params: { query: { limit: 5, task } } })),
    enabled: !!task,
  });
  const go = (to: string) => {
    onClose();
    void navigate({ to });
  };
  const row =
    "flex items-center gap-2 rounded-md px-2 py-1.5 text-sm data-[selected=true]:bg-accent-soft data-[selected=true]:text-accent";
  return (
    <Command.Dialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      label="Command palette"
      overlayClassName="fixed inset-0 z-40 bg-black/40"
      contentClassName="fixed top-[15vh] left-1/2 z-50 w-[34rem] max-w-[94vw] -translate-x-1/2 rounded-lg border bg-panel p-2 shadow-xl"
    >
      <Command.Input
        value={typed}
        onValueChange={setTyped}
        placeholder="Go to a page, a job, a task or a trial number"
        className="mb-2 h-9 w-full border-b bg-transparent px-2 outline-none"
      />
      <Command.List className="max-h-80 overflow-auto">
        <Command.Empty className="px-2 py-3 text-sm text-ink-soft">No match.</Command.Empty>
        {number == null ? null : (
          <Command.Item value={`${typed} job`} className={row} onSelect={() => go(`/jobs/${number}`)}>
            Go to job {number}
          </Command.Item>
        )}
        {number == null ? null : (
          <Command.Item value={`${typed} trial`} className={row} onSelect={() => go(`/trials/${number}`)}>
            Go to trial {number}
          </Command.Item>
        )}
        {PLACES.map(([name, to]) => (
          <Command.Item key={to} className={row} onSelect={() => go(to)}>
            {name}
          </Command.Item>
        ))}
        {jobs.data?.items.map((job) => (
          <Command.Item
            key={job.id}
            value={`job ${job.id} ${job.name}`}
            className={row}
            onSelect={() => go(`/jobs/${job.id}`)}
          >
            <span className="text-ink-faint">job {job.id}</span> {job.name}
          </Command.Item>
        ))}
        {tasks.data?.items.map((task) => (
          <Command.Item
            key={task.digest}
            value={`task ${task.name} ${task.digest}`}
            className={row}
            onSelect={() => go(`/tasks/${encodeURIComponent(task.digest)}`)}
          >
            <span className="text-ink-faint">task</span> {task.name}
          </Command.Item>
        ))}
        {(task ? trials.data?.items : undefined)?.map((trial) => (
          <Command.Item
            key={trial.id}
            value={`trial ${trial.id} ${trial.task.name}`}
            className={row}
            onSelect={() => go(`/trials/${trial.id}`)}
          >
            <span className="text-ink-faint">trial {trial.id}</span> {trial.task.name}
            <span className="text-xs text-ink-faint">
              {configuration(trial)} · {trial.outcome ?? trial.state}
            </span>
          </Command.Item>
        ))}
        <Command.Item className={row} onSelect={() => window.location.assign("/docs")}>
          API documentation
        </Command.Item>
      </Command.List>
    </Command.Dialog>
  );
}
