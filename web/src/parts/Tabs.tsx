import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export type Tab = { id: string; name: ReactNode; content: ReactNode };

/** Tabs whose choice the caller keeps, usually in the URL. */
export function Tabs({
  tabs,
  at,
  onChange,
  label,
}: {
  tabs: Tab[];
  at: string;
  onChange: (id: string) => void;
  label: string;
}) {
  return (
    <Radix.Root value={at} onValueChange={onChange}>
      <Radix.List aria-label={label} className="flex gap-1 overflow-x-auto border-b px-2">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px border-b-2 border-transparent px-2.5 py-1.5 text-sm whitespace-nowrap text-ink-soft hover:text-ink data-[state=active]:border-accent data-[state=active]:font-semibold data-[state=active]:text-ink"
          >
            {tab.name}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.id} value={tab.id} className="min-w-0">
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
