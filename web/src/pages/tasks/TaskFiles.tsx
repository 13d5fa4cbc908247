import { useQuery } from "@tanstack/react-query";

import { api, unwrap } from "@/api/client";
import { encodedPath, FileBrowser } from "@/parts/FileBrowser";
import { Trouble, Waiting } from "@/parts/Notice";

export function TaskFiles({ digest }: { digest: string }) {
  const files = useQuery({
    queryKey: ["task", digest, "files"],
    queryFn: () => unwrap(api.GET("/api/v1/tasks/{digest}/files", { params: { path: { digest } } })),
  });
  if (files.error) return <Trouble error={files.error} />;
  if (!files.data) return <Waiting />;
  return (
    <FileBrowser
      files={files.data.items}
      urlOf={(path) => `/api/v1/tasks/${encodeURIComponent(digest)}/files/${encodedPath(path)}`}
    />
  );
}
