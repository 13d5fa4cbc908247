/** Every address of the page. Each page is a chunk of its own, loaded when somebody goes there. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";

import { Empty, Trouble, Waiting } from "./parts/Notice";
import { Shell } from "./shell/Shell";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Empty>There is no such page.</Empty>,
  errorComponent: ({ error }) => <Trouble error={error} />,
});
/** Search parameters are filters: plain text, whatever they are. */
const text = (search: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(search)
      .filter(([, value]) => value != null && value !== "")
      .map(([name, value]) => [name, String(value)]),
  );

const page = <Path extends string>(path: Path, load: () => Promise<{ default: React.ComponentType }>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load), validateSearch: text });

const tree = root.addChildren([
  createRoute({
    getParentRoute: () => root,
    path: "/",
    validateSearch: text,
    beforeLoad: ({ search }) => {
      throw redirect({ to: "/jobs", search, replace: true });
    },
  }),
  page("/jobs", () => import("./pages/jobs/Jobs")),
  page("/jobs/$job", () => import("./pages/job/Job")),
  page("/trials/$trial", () => import("./pages/trial/Trial")),
  page("/shared", () => import("./pages/shared/Shared")),
  page("/compare", () => import("./pages/compare/Compare")),
  page("/leaderboard", () => import("./pages/leaderboard/Leaderboard")),
  page("/tasks", () => import("./pages/tasks/Tasks")),
  page("/tasks/$digest", () => import("./pages/tasks/Task")),
  page("/launch", () => import("./pages/launch/Launch")),
  page("/workers", () => import("./pages/workers/Workers")),
  page("/settings", () => import("./pages/settings/Settings")),
]);

/** As plain as a link can be: `?step=3&tab=logs`, without the quotes that the router would put around numbers. */
const parseSearch = (search: string) => Object.fromEntries(new URLSearchParams(search));
const stringifySearch = (search: Record<string, unknown>) => {
  const written = new URLSearchParams(text(search))
    .toString()
    .replaceAll("%2C", ",")
    .replaceAll("%3A", ":")
    .replaceAll("%2F", "/");
  return written ? `?${written}` : "";
};

export const router = createRouter({
  routeTree: tree,
  parseSearch,
  stringifySearch,
  defaultPendingComponent: () => <Waiting />,
  defaultPendingMs: 300,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
