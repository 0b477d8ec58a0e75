import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { onReconnect } from "../shared/connection-state.ts";
import { watchChanges } from "./service-changes.ts";
import type { ServiceChange } from "../../client/follow-logs.ts";

interface LiveOptions {
  /** What `load` depends on: when one of these changes, it is called again. */
  readonly of?: readonly unknown[];
  /** Whether what is shown may be out of date after a change. */
  readonly concerns?: (change: ServiceChange) => boolean;
  /** Changes within this time cause one request. */
  readonly pauseMs?: number;
  /** Loads again at this interval, for what no change announces. */
  readonly everyMs?: number;
}

/**
 * Loads what a page shows and keeps it up to date: after changes that concern it, and when the
 * service is back. A value stays while the next one is loaded, and where that fails.
 */
export function useLive<T>(load: () => Promise<T>, options: LiveOptions = {}) {
  const { of = [], concerns = () => false, pauseMs = 500, everyMs } = options;
  const value = useSignal<T | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const sent = useRef(0);
  const shown = useRef(0);
  const reload = async () => {
    const request = ++sent.current;
    const result = await load().then(
      (loaded) => ({ loaded, thrown: undefined }),
      (thrown: unknown) => ({ loaded: value.peek(), thrown }),
    );
    // The answer to a later request can come first.
    if (request < shown.current) return;
    shown.current = request;
    [value.value, error.value] = [result.loaded, result.thrown];
  };
  useEffect(() => {
    void reload();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const reloadAfterPause = () => {
      timer = undefined;
      void reload();
    };
    const stopChanges = watchChanges((change) => {
      if (concerns(change)) timer ??= setTimeout(reloadAfterPause, pauseMs);
    });
    const stopReturns = onReconnect(() => void reload());
    const poll = everyMs && setInterval(() => document.hidden || void reload(), everyMs);
    return () => {
      stopChanges();
      stopReturns();
      clearTimeout(timer);
      clearInterval(poll);
    };
  }, of);
  return { value: value.value, error: error.value, reload };
}
