/** What a try left behind, by name: the page asks for nothing that is not there. */

import { useQuery } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";

export function useFiles(trial: number, attempt: number | undefined, enabled: boolean) {
  return useQuery({
    queryKey: ["trial", trial, "files", attempt],
    queryFn: () => unwrap(api.GET("/api/v1/trials/{trial_id}/files", { params: { path: { trial_id: trial }, query: { attempt } as never } })),
    enabled,
    retry: false,
  });
}
