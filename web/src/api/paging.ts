/** Lists that come in pages: the next one is fetched when somebody scrolls near the end. */

import { type InfiniteData, type QueryKey, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

type Paged<Item> = { items: Item[]; next?: string | null };

export function usePages<Item>(key: QueryKey, fetchPage: (cursor: string | undefined) => Promise<Paged<Item>>) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => fetchPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (old) => old,
  });
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  /** The whole list, however long: for files, not for the screen. */
  const all = useCallback(async () => {
    const found: Item[] = [];
    let cursor: string | undefined;
    do {
      const page = await fetchPage(cursor);
      found.push(...page.items);
      cursor = page.next ?? undefined;
    } while (cursor);
    return found;
  }, [fetchPage]);
  return { ...query, rows, more, all, isWhole: !hasNextPage };
}

/** Puts newer versions of rows in the place of the old ones; the rest of a long list is not asked for again. */
export function usePatch<Item>(key: QueryKey, idOf: (item: Item) => number) {
  const queries = useQueryClient();
  return useCallback(
    (fresh: Item[]) => {
      const byId = new Map(fresh.map((item) => [idOf(item), item]));
      queries.setQueriesData<InfiniteData<Paged<Item>>>({ queryKey: key }, (old) =>
        old?.pages && { ...old, pages: old.pages.map((page) => ({ ...page, items: page.items.map((item) => byId.get(idOf(item)) ?? item) })) },
      );
    },
    [queries, key, idOf],
  );
}
