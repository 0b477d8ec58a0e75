import { useSignal } from "@preact/signals";
import { useLive } from "./use-live.ts";
import type { ServiceChange } from "../../client/follow-logs.ts";

export interface LoadedPage<Entry> {
  readonly entries: readonly Entry[];
  readonly nextCursor: string | null;
}

interface LivePagesOptions {
  readonly of?: readonly unknown[];
  readonly concerns?: (change: ServiceChange) => boolean;
}

/** A list of the service, page by page, kept up to date as far as it was loaded. */
export function useLivePages<Entry>(
  loadPage: (cursor: string | undefined) => Promise<LoadedPage<Entry>>,
  options: LivePagesOptions = {},
) {
  const pages = useSignal(1);
  const load = async () => {
    const entries: Entry[] = [];
    let cursor: string | null | undefined;
    for (let page = 0; page < pages.peek() && cursor !== null; page++) {
      const loaded: LoadedPage<Entry> = await loadPage(cursor ?? undefined);
      entries.push(...loaded.entries);
      cursor = loaded.nextCursor;
    }
    return { entries, hasMore: cursor !== null };
  };
  const { value, error, reload } = useLive(load, options);
  const loadMore = () => {
    pages.value += 1;
    return reload();
  };
  return { entries: value?.entries, hasMore: value?.hasMore ?? false, error, reload, loadMore };
}
