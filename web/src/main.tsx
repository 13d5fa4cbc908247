import "./styles.css";

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ServiceError } from "./api/problem";
import { router } from "./routes";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // An answer that says what is wrong will not change by asking again; a service that restarts will come back.
      retry: (failures, error) => !(error instanceof ServiceError && error.status < 500) && failures < 5,
    },
  },
});

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
