/** Every task of the library: the list to choose from, and what short links are looked up in. */

import { useQuery } from "@tanstack/react-query";

import { api, type Schemas, unwrap } from "@/api/client";
import { readAll } from "@/api/paging";

export function useTasks() {
  return useQuery<Schemas["TaskItem"][]>({
    queryKey: ["tasks", "all"],
    queryFn: ({ signal }) =>
      readAll((page) => unwrap(api.GET("/api/v1/tasks", { params: { query: page as never } })), () => {}, signal),
  });
}
