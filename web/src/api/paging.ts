/** Lists that come in pages: the next one is fetched when somebody scrolls near the end. */

import { type InfiniteData, type QueryKey, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

type Paged<Item> = { items: Item[]; next?: string | null };
type FetchPage<Item> = (page: { cursor: string | undefined; limit: number }) => Promise<Paged<Item>>;

/** Rows of a page on the screen, and of one that is fetched for a file: the service gives no more at once. */
const [SHOWN, MOST] = [200, 500];

type Options = { shown?: number; everyMs?: number };

export function usePages<Item>(key: QueryKey, fetchPage: FetchPage<Item>, { shown = SHOWN, everyMs }: Options = {}) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => fetchPage({ cursor: pageParam, limit: shown }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (old) => old,
    refetchInterval: everyMs,
  });
  const { data, hasNextPage, isFetching, fetchNextPage } = query;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  // Not while anything is on its way: one would cancel the other.
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  return {
    ...query,
    rows,
    more,
    isWhole: !hasNextPage,
    all: (tell: (rows: number) => void, signal: AbortSignal) => readAll(fetchPage, tell, signal),
  };
}

/** The whole list, however long: for files, not for the screen. */
export async function readAll<Item>(
  fetchPage: FetchPage<Item>,
  tell: (rows: number) => void,
  signal: AbortSignal,
): Promise<Item[]> {
  const found: Item[] = [];
  let cursor: string | undefined;
  do {
    signal.throwIfAborted();
    const page = await fetchPage({ cursor, limit: MOST });
    found.push(...page.items);
    tell(found.length);
    cursor = page.next ?? undefined;
  } while (cursor);
  return found;
}

/** Puts newer versions of rows in the place of the old ones; the rest of a long list is not asked for again. */
export function usePatch<Item>(key: QueryKey, idOf: (item: Item) => number) {
  const queries = useQueryClient();
  return useCallback(
    (fresh: Item[]) => {
      const byId = new Map(fresh.map((item) => [idOf(item), item]));
      queries.setQueriesData<InfiniteData<Paged<Item>>>(
        { queryKey: key },
        (old) =>
          old?.pages && {
            ...old,
            pages: old.pages.map((page) => ({
              ...page,
              items: page.items.map((item) => byId.get(idOf(item)) ?? item),
            })),
          },
      );
    },
    [queries, key, idOf],
  );
}
