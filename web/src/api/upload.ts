/** Uploads with progress. `fetch` cannot tell how much was sent, so this is the old way. */

import { type Problem, ServiceError } from "./problem";

export function upload<Answer>(
  url: string,
  files: File[],
  onProgress: (share: number) => void,
  signal?: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    for (const file of files) form.append("files", file, file.name);
    request.open("POST", url);
    request.responseType = "json";
    request.upload.onprogress = (event) =>
      event.lengthComputable ? onProgress(event.loaded / event.total) : undefined;
    request.onload = () => {
      const body = request.response as (Answer & { error?: Problem }) | null;
      if (request.status < 400) resolve(body as Answer);
      else
        reject(
          new ServiceError(
            request.status,
            body?.error ?? { code: "error", message: `The service answered ${request.status}.` },
          ),
        );
    };
    request.onerror = () => reject(new TypeError("The service does not answer."));
    request.onabort = () => reject(new ServiceError(0, { code: "aborted", message: "The upload was stopped." }));
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
