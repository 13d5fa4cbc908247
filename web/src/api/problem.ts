/** Errors of the service as the page shows them: a sentence, and what to do. */

export type Problem = {
  code: string;
  message: string;
  fix?: string;
  field?: string;
  problems?: { file: string; line?: number | null; message: string; fix?: string; severity?: string }[];
};

export class ServiceError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof ServiceError) return error.problem;
  if (error instanceof TypeError) {
    return {
      code: "offline",
      message: "The service does not answer.",
      fix: "Is it still running? The page tries again by itself.",
    };
  }
  return { code: "fault", message: error instanceof Error ? error.message : String(error) };
}
