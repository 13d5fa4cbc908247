/** Every configuration on every set of tasks that it ran, over all jobs: who leads, by how much, and who may be compared. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, unwrap } from "@/api/client";
import { useLive } from "@/api/live";
import { SETTLED_MS, useInvalidation } from "@/api/refresh";
import { buttonLook } from "@/parts/Button";
import { type Choice, Filters, useChosen } from "@/parts/Filters";
import { plural } from "@/parts/format";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { useTitle } from "@/parts/title";
import { BoardTable } from "./BoardTable";
import { Overview } from "./Overview";

const CHOICES: readonly Choice[] = [
  { name: "dataset", label: "Dataset" },
  { name: "agent", label: "Agent" },
  { name: "model", label: "Model" },
  { name: "since", label: "Since, as 2026-11-01" },
];

export default function Leaderboard() {
  useTitle("Leaderboard");
  const chosen = useChosen(CHOICES);
  const found = useQuery({
    queryKey: ["leaderboard", chosen],
    queryFn: () => unwrap(api.GET("/api/v1/leaderboard", { params: { query: chosen } })),
    placeholderData: keepPreviousData,
  });
  useLive("/api/v1/events?kinds=job.created,job.cancelled,job.ended", useInvalidation(["leaderboard"], SETTLED_MS));
  const boards = found.data?.boards ?? [];
  return (
    <div className="flex flex-col gap-3">
      <header className="flex flex-wrap items-baseline justify-between gap-3">
        <h1>Leaderboard</h1>
        <Filters choices={CHOICES} />
      </header>
      <p className="max-w-4xl text-sm text-ink-soft">
        The newest eligible job represents a configuration; without one, the newest that has a score. Jobs are never
        pooled: the others are listed beside it. A board has configurations that ran exactly the same tasks.{" "}
        {found.data ? `Rules: ${found.data.rules} ${found.data.version}, and all tasks of a dataset.` : ""}
      </p>
      {found.data?.older ? (
        <p role="status" className="rounded-md bg-error-soft px-3 py-1 text-sm text-error">
          {plural(found.data.older, "older jobs")} not looked at: there are too many. Choose with “since”.
        </p>
      ) : null}
      {found.error ? (
        <Trouble error={found.error} retry={() => void found.refetch()} />
      ) : !found.data ? (
        <Waiting rows={10} />
      ) : !boards.length ? (
        <Empty
          action={
            <Link to="/launch" className={buttonLook("main")}>
              Launch a job
            </Link>
          }
        >
          {Object.keys(chosen).length ? "No job matches these filters." : "No job has run yet. A leaderboard ranks their scores."}
        </Empty>
      ) : (
        <>
          {boards.length > 1 ? <Overview boards={boards} /> : null}
          {boards.map((board) => (
            <BoardTable key={board.label} board={board} />
          ))}
        </>
      )}
    </div>
  );
}
