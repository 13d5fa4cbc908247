/** The frame of every page: a slim rail, the line's health on top, the palette and the keys. */

import { Link, Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";

import { useIsShared } from "@/api/access";
import { useLineState } from "@/api/live";
import { SignIn } from "./SignIn";
import { ThemeButton } from "./ThemeButton";
import { useKeys } from "./keys";

const Palette = lazy(() => import("./Palette"));

const PLACES = [
  { to: "/jobs", name: "Jobs", icon: "M3 5h14M3 10h14M3 15h9" },
  { to: "/tasks", name: "Tasks", icon: "M4 3h12v14H4zM7 7h6M7 10h6" },
  { to: "/compare", name: "Compare", icon: "M3 5h5v10H3zM12 8h5v7h-5zM5.5 2.5v2M14.5 5.5v2" },
  { to: "/leaderboard", name: "Leaderboard", icon: "M3 17V11h4v6M8 17V4h4v13M13 17V8h4v9" },
  { to: "/launch", name: "Launch", icon: "M5 3l11 7-11 7z" },
  { to: "/workers", name: "Workers", icon: "M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01" },
  { to: "/settings", name: "Settings", icon: "M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 2v3M10 15v3M2 10h3M15 10h3" },
] as const;

export function Shell() {
  const [palette, setPalette] = useState(false);
  const shared = useIsShared();
  const help = useKeys(() => setPalette(true), shared);
  return (
    <div className="flex min-h-screen flex-col sm:flex-row">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">
        Skip to the content
      </a>
      <nav
        aria-label="Main"
        className="z-20 flex shrink-0 flex-wrap items-center gap-x-1 border-b bg-panel px-2 py-1 sm:sticky sm:top-0 sm:h-screen sm:w-24 sm:flex-col sm:flex-nowrap sm:gap-1 sm:items-stretch sm:border-r sm:border-b-0 sm:py-3"
      >
        {shared ? (
          <img src="/favicon.svg" alt="Seatrial" width="26" height="26" className="sm:mx-auto" />
        ) : (
          <Link to="/jobs" className="mr-1 flex items-center justify-center sm:mb-3" aria-label="Seatrial">
            <img src="/favicon.svg" alt="" width="26" height="26" />
          </Link>
        )}
        {(shared ? [] : PLACES).map((place) => (
          <Link
            key={place.to}
            to={place.to}
            className="flex items-center gap-1.5 rounded-md px-2 py-1.5 text-xs text-ink-soft no-underline hover:bg-raised sm:px-0.5 data-[status=active]:bg-accent-soft data-[status=active]:font-semibold data-[status=active]:text-accent sm:flex-col sm:gap-0.5"
          >
            <svg
              viewBox="0 0 20 20"
              width="17"
              height="17"
              fill="none"
              stroke="currentColor"
              strokeWidth="1.6"
              strokeLinecap="round"
              strokeLinejoin="round"
              aria-hidden
              className="hidden sm:block"
            >
              <path d={place.icon} />
            </svg>
            {place.name}
          </Link>
        ))}
        <span className="grow" />
        {shared ? null : (
          <a
            href="/docs"
            className="flex items-center gap-1.5 rounded-md px-2 py-1.5 text-xs text-ink-soft no-underline hover:bg-raised sm:flex-col sm:gap-0.5"
          >
            <svg
              viewBox="0 0 20 20"
              width="17"
              height="17"
              fill="none"
              stroke="currentColor"
              strokeWidth="1.6"
              strokeLinejoin="round"
              aria-hidden
              className="hidden sm:block"
            >
              <path d="M4 3h9l3 3v11H4zM7 9h6M7 12h6" />
            </svg>
            Docs
          </a>
        )}
        <ThemeButton />
      </nav>
      <div className="flex min-w-0 grow flex-col">
        <Line />
        <main id="main" className="mx-auto w-full max-w-[1600px] min-w-0 grow p-3 sm:p-5">
          <Outlet />
        </main>
      </div>
      {palette ? (
        <Suspense>
          <Palette onClose={() => setPalette(false)} />
        </Suspense>
      ) : null}
      {help}
      <SignIn />
    </div>
  );
}

/** The stream's health: nobody should have to wonder whether the page still lives. */
function Line() {
  const line = useLineState();
  const colour = { idle: "bg-transparent", connecting: "bg-line-strong", open: "bg-passed", lost: "bg-error" }[line];
  return (
    <div className="sticky top-0 z-30">
      <div className={`h-0.5 ${colour}`} data-line={line} />
      {line === "lost" ? (
        <p role="status" className="bg-error-soft px-4 py-1 text-sm text-error">
          The live connection is lost. What you see may be old; the page catches up as soon as the service answers.
        </p>
      ) : null}
    </div>
  );
}
