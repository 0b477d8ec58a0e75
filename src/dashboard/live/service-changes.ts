import { access, requestLostSince, streamLostSince } from "../shared/connection-state.ts";
import type { ServiceChange } from "../../client/follow-logs.ts";
import { ProblemError } from "../../client/problem-error.ts";
import { delay } from "../../limits/retry.ts";
import { service } from "../session/service.ts";
import { self } from "../session/session-state.ts";
import { readServiceTime } from "../shared/clock.ts";

type ChangeListener = (change: ServiceChange) => void;

type Message = { readonly change: ServiceChange } | { readonly lostSince: number | undefined };

/**
 * A browser has six connections to a host over all its tabs: one tab reads the stream, and sends
 * the others what it reads. When it closes, another one goes on.
 */
const channel = new BroadcastChannel("changes");
const listeners = new Set<ChangeListener>();
const firstPauseMs = 500;
const longestPauseMs = 5000;
/** Nobody notices a shorter absence. */
const noticedAfterMs = 2000;

let last: number | undefined;

/** Calls for each change from now on. @returns a function that ends it */
export function watchChanges(listener: ChangeListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Reads changes for as long as the page is open, in this tab or in another one. */
export function followChanges(): void {
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => receive(data));
  // Addresses without TLS have no locks: there each tab reads a stream.
  if (!("locks" in navigator)) void readForAllTabs();
  else void navigator.locks.request("changes", readForAllTabs);
}

function receive(message: Message): void {
  if ("lostSince" in message) {
    streamLostSince.value = message.lostSince;
    return;
  }
  requestLostSince.value = undefined;
  last = message.change.seq;
  for (const listener of listeners) listener(message.change);
}

function tellAll(message: Message): void {
  receive(message);
  channel.postMessage(message);
}

async function readForAllTabs(): Promise<never> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    await waitForSession();
    const notice = noticeAbsence();
    try {
      // What the page has read may be as old as who is signed in.
      const after = last ?? self.peek()?.lastChange;
      for await (const change of service.readChanges({ after })) {
        notice.end();
        pauseMs = firstPauseMs;
        tellAll({ change });
      }
    } catch (error) {
      if (isMissingSession(error)) notice.end();
    }
    await delay(pauseMs);
  }
}

let absence: ReturnType<typeof setTimeout> | undefined;

/** Reports an absence that lasts, over several tries, until it ends. */
function noticeAbsence(): { readonly end: () => void } {
  const lostAt = readServiceTime();
  absence ??= setTimeout(() => tellAll({ lostSince: lostAt }), noticedAfterMs);
  return {
    end() {
      clearTimeout(absence);
      absence = undefined;
      if (streamLostSince.value !== undefined) tellAll({ lostSince: undefined });
    },
  };
}

function isMissingSession(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === "unauthorized";
}

async function waitForSession(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = access.subscribe((state) => {
    if (state === "in") resolve();
  });
  await promise;
  stop();
}
