/** The read-only link that this page was opened with. It is kept in memory only; its address has it in the fragment. */

import { useSyncExternalStore } from "react";

let secret = "";
const watchers = new Set<() => void>();

export function openLink(next: string) {
  if (secret === next) return;
  secret = next;
  for (const watcher of watchers) watcher();
}

/** Whether the page shows what a read-only link opens: nothing can be changed, and there is no live connection. */
export function useIsShared(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => secret !== "",
  );
}

export const isShared = () => secret !== "";

/** Headers of a request, with the link where there is one. */
export function withAccess(headers: Record<string, string> = {}): Record<string, string> {
  return secret ? { ...headers, Authorization: `Bearer ${secret}` } : headers;
}
