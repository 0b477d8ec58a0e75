import { computed, signal } from "@preact/signals";

/** Whether somebody is signed in; `unknown` until the service was asked. */
export const access = signal<"unknown" | "in" | "out">("unknown");

/** When the stream of changes was lost, milliseconds since 1970; undefined while it is open. */
export const streamLostSince = signal<number | undefined>(undefined);

/** When a request last found no service; undefined once one is answered. */
export const requestLostSince = signal<number | undefined>(undefined);

/** Since when the page is out of date, as far as it knows; undefined while it is live. */
export const disconnectedSince = computed(() => streamLostSince.value ?? requestLostSince.value);

/** Whether the service answers nothing of what the page asks. */
const isAway = computed(() => disconnectedSince.value !== undefined || access.value === "out");

/**
 * Calls each time that the service is back after an absence, or that somebody has signed in again.
 * @returns a function that ends it
 */
export function onReconnect(listener: () => unknown): () => void {
  let wasAway = false;
  return isAway.subscribe((away) => {
    const isBack = wasAway && !away;
    wasAway = away;
    if (isBack) listener();
  });
}
