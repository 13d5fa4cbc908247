/** Files by name, and the text of the one that is chosen. What a sandbox wrote is shown as text, never as markup. */

import { useQuery } from "@tanstack/react-query";

import { isShared, withAccess } from "@/api/access";
import { buttonLook } from "./Button";
import { save } from "./csv";
import { useFilters } from "./Filters";
import { bytes } from "./format";
import { Empty, Trouble, Waiting } from "./Notice";

const SHOWN = 512 * 1024;

/** A file's path as a part of an address. */
export function encodedPath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

export function FileBrowser({
  files,
  urlOf,
}: {
  files: { path: string; size: number }[];
  urlOf: (path: string) => string;
}) {
  const [filters, setFilter] = useFilters();
  const chosen = files.find((file) => file.path === filters.file) ?? files[0];
  if (!chosen) return <Empty>There are no files.</Empty>;
  return (
    <div className="grid min-h-64 md:grid-cols-[18rem_minmax(0,1fr)]">
      <ul className="max-h-[34rem] overflow-auto border-r py-1 text-sm" aria-label="Files">
        {files.map((file) => (
          <li key={file.path}>
            <button
              type="button"
              aria-current={file === chosen || undefined}
              onClick={() => setFilter("file", file.path)}
              className="flex w-full items-center justify-between gap-2 px-3 py-0.5 text-left hover:bg-raised aria-[current]:bg-accent-soft aria-[current]:text-accent"
            >
              <span className="min-w-0 truncate font-mono text-xs" title={file.path}>
                {file.path}
              </span>
              <span className="shrink-0 text-xs text-ink-faint">{bytes(file.size)}</span>
            </button>
          </li>
        ))}
      </ul>
      <Content file={chosen} url={urlOf(chosen.path)} />
    </div>
  );
}

async function saveShared(url: string, name: string) {
  const answer = await fetch(url, { headers: withAccess() });
  if (answer.ok) save(name, await answer.blob());
}

function Content({ file, url }: { file: { path: string; size: number }; url: string }) {
  const text = useQuery({
    queryKey: ["file", url],
    queryFn: async () => {
      const answer = await fetch(url, { headers: withAccess({ Range: `bytes=0-${SHOWN - 1}` }) });
      if (!answer.ok) throw new Error(`The file could not be read (${answer.status}).`);
      return new TextDecoder().decode((await answer.arrayBuffer()).slice(0, SHOWN));
    },
  });
  return (
    <div className="min-w-0">
      <div className="flex items-center justify-between gap-2 border-b px-3 py-1 text-sm">
        <code className="min-w-0 truncate font-mono text-xs">{file.path}</code>
        <a
          className={buttonLook("quiet")}
          href={url}
          download={file.path.split("/").at(-1)}
          onClick={(event) => {
            if (!isShared()) return;
            // A link's secret is sent in a header, which only a script can set.
            event.preventDefault();
            void saveShared(url, file.path.split("/").at(-1) ?? "file");
          }}
        >
          Download
        </a>
      </div>
      {text.error ? <Trouble error={text.error} /> : null}
      {text.isPending ? (
        <Waiting rows={3} />
      ) : (
        <pre tabIndex={0} className="max-h-[32rem] overflow-auto p-3 font-mono text-xs whitespace-pre-wrap break-words">
          {text.data}
        </pre>
      )}
      {file.size > SHOWN ? (
        <p className="border-t px-3 py-1 text-xs text-ink-soft">
          The first {bytes(SHOWN)} of {bytes(file.size)}; download it to see all.
        </p>
      ) : null}
    </div>
  );
}
