/** Typed calls to the service. The types come from its OpenAPI file: `npm run types`. */

import createClient, { type Middleware } from "openapi-fetch";

import { isShared, withAccess } from "./access";
import { type Problem, ServiceError } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

const raise: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(withAccess())) request.headers.set(name, value);
    return request;
  },
  async onResponse({ response }) {
    if (response.ok) return undefined;
    const body = (await response.json().catch(() => null)) as { error?: Problem; detail?: unknown } | null;
    const problem = body?.error ?? {
      code: "error",
      message: String(body?.detail ?? `The service answered ${response.status}.`),
    };
    if (response.status === 401 && !isShared()) window.dispatchEvent(new CustomEvent("seatrial:unauthenticated"));
    throw new ServiceError(response.status, problem);
  },
};

export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin" });
api.use(raise);

/** The data of an answer that was not an error; `raise` has thrown otherwise. */
export async function unwrap<T>(answer: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  return (await answer).data as T;
}
