/** Everything else that was kept of a trial, one tab each. */

import type { Schemas } from "@/api/client";
import { FileBrowser } from "@/parts/FileBrowser";
import { useFilters } from "@/parts/Filters";
import { Empty, Trouble, Waiting } from "@/parts/Notice";
import { Tabs } from "@/parts/Tabs";
import type { Call } from "./calls";
import { fileUrl, type Try, useFiles } from "./files";
import { Flags } from "./Flags";
import { LockView } from "./LockView";
import { Logs } from "./Logs";
import { ModelCalls } from "./ModelCalls";
import type { Step } from "./steps";
import { Tests } from "./Tests";

export function Details({
  trial,
  steps,
  calls = [],
  of,
  ended,
}: {
  trial: Schemas["TrialDetail"];
  steps: Step[];
  /** Of a running try. */
  calls?: Call[];
  of: Try;
  ended: boolean;
}) {
  const [filters, setFilter] = useFilters();
  // While it runs again, what the try before left is that try's alone.
  const result = ended ? trial.result : null;
  const tests = result?.tests ?? [];
  const passed = tests.filter((test) => test.status === "passed").length;
  return (
    <Tabs
      label="Of this trial"
      at={filters.tab ?? "tests"}
      onChange={(tab) => setFilter("tab", tab)}
      tabs={[
        {
          id: "tests",
          name: tests.length ? `Tests (${passed}/${tests.length})` : "Tests",
          content: ended ? (
            <Tests trial={trial} tryNumber={of.tryNumber} />
          ) : (
            <Empty>Tests run after the agent has ended.</Empty>
          ),
        },
        { id: "logs", name: "Logs", content: <Logs of={of} ended={ended} /> },
        { id: "files", name: "Files", content: <Files of={of} ended={ended} /> },
        { id: "calls", name: "Model calls", content: <ModelCalls of={of} ended={ended} live={calls} steps={steps} /> },
        {
          id: "lock",
          name: "Configuration and lock",
          content: <LockView agent={trial.agent_spec} lock={result?.lock} />,
        },
        {
          id: "flags",
          name: result?.marks.length ? `Flags (${result.marks.length})` : "Flags",
          content: <Flags result={result} />,
        },
      ]}
    />
  );
}

function Files({ of, ended }: { of: Try; ended: boolean }) {
  const files = useFiles(of, ended);
  if (!ended) return <Empty>Files are stored when the try ends.</Empty>;
  if (files.error) return <Trouble error={files.error} />;
  if (!files.data) return <Waiting />;
  const number = files.data.attempt;
  const leftOut = files.data.left_out;
  return (
    <>
      {leftOut && (
        <details className="left-out">
          <summary>
            {leftOut.count === 1 ? "1 file was" : `${leftOut.count} files were`} not kept
          </summary>
          <ul>
            {leftOut.examples.map((file, index) => (
              <li key={index}>
                <code>{file.path}</code> {file.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
      <FileBrowser files={files.data.items} urlOf={(path) => fileUrl(of.trial, path, number)} />
    </>
  );
}
