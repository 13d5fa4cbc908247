/** Everything else that was kept of a trial, one tab each. */

import type { Schemas } from "@/api/client";
import { FileBrowser } from "@/parts/FileBrowser";
import { useFilters } from "@/parts/Filters";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Tabs } from "@/parts/Tabs";
import { useFiles } from "./files";
import { Flags } from "./Flags";
import { LockView } from "./LockView";
import { Logs } from "./Logs";
import { ModelCalls } from "./ModelCalls";
import type { Step } from "./steps";
import { Tests } from "./Tests";

export function Details({ trial, steps, attempt }: { trial: Schemas["TrialDetail"]; steps: Step[]; attempt: number | undefined }) {
  const [filters, setFilter] = useFilters();
  const tests = trial.result?.tests ?? [];
  const passed = tests.filter((test) => test.status === "passed").length;
  return (
    <Tabs label="Of this trial" at={filters.tab ?? "tests"} onChange={(tab) => setFilter("tab", tab)} tabs={[
      { id: "tests", name: tests.length ? `Tests (${passed}/${tests.length})` : "Tests", content: <Tests trial={trial} attempt={attempt} /> },
      { id: "logs", name: "Logs", content: <Logs trial={trial.id} attempt={attempt} ended={trial.state === "ended" || attempt != null} /> },
      { id: "files", name: "Files", content: <Files trial={trial.id} attempt={attempt} ended={trial.state === "ended" || attempt != null} /> },
      { id: "calls", name: "Model calls", content: <ModelCalls steps={steps} /> },
      { id: "lock", name: "Configuration and lock", content: <LockView trial={trial} /> },
      { id: "flags", name: trial.result?.marks.length ? `Flags (${trial.result.marks.length})` : "Flags", content: <Flags trial={trial} /> },
    ]} />
  );
}

function Files({ trial, attempt, ended }: { trial: number; attempt: number | undefined; ended: boolean }) {
  const files = useFiles(trial, attempt, ended);
  if (!ended) return <Empty>Files are kept when the try ends.</Empty>;
  if (files.error) return <Trouble error={files.error} />;
  if (!files.data) return <Waiting />;
  const number = files.data.attempt;
  return <FileBrowser files={files.data.items} urlOf={(path) => `/api/v1/trials/${trial}/files/${path.split("/").map(encodeURIComponent).join("/")}?attempt=${number}`} />;
}
