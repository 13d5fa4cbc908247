import { Copy } from "@/parts/Copy";

/** What was asked for, in full: the same can be asked for again. */
export function SpecView({ spec }: { spec: unknown }) {
  const text = JSON.stringify(spec, null, 2);
  return (
    <div className="p-3">
      <div className="mb-2">
        <Copy text={text}>Copy as JSON</Copy>
      </div>
      <pre className="max-h-[32rem] overflow-auto rounded-md bg-raised p-3 font-mono text-xs" tabIndex={0}>
        {text}
      </pre>
    </div>
  );
}
