/** The terminal recording of a try: its text, when it began, and whether there is one. */

import { useQuery } from "@tanstack/react-query";

export type Recording = { text: string | null; start: number | null; width: number; height: number; pending: boolean };

const NONE: Recording = { text: null, start: null, width: 160, height: 40, pending: false };

export function useRecording(trial: number, attempt: number | undefined, enabled: boolean): Recording {
  const query = useQuery({
    queryKey: ["trial", trial, "recording", attempt],
    queryFn: async () => {
      const answer = await fetch(`/api/v1/trials/${trial}/recording${attempt ? `?attempt=${attempt}` : ""}`);
      return answer.ok ? answer.text() : null;
    },
    enabled,
    staleTime: Infinity,
    retry: false,
  });
  if (enabled && query.isPending) return { ...NONE, pending: true };
  return query.data ? { ...NONE, ...headOf(query.data), text: query.data } : NONE;
}

function headOf(text: string): Partial<Recording> {
  try {
    const head = JSON.parse(text.slice(0, text.indexOf("\n"))) as { timestamp?: number; width?: number; height?: number };
    return { start: head.timestamp ? head.timestamp * 1000 : null, width: head.width ?? 160, height: head.height ?? 40 };
  } catch {
    return {};
  }
}
