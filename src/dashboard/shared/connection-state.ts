import { computed, signal } from "@preact/signals";

/** When the stream of changes was lost, milliseconds since 1970; undefined while it is open. */
export const streamLostSince = signal<number | undefined>(undefined);

/** When a request last found no service; undefined once one is answered. */
export const requestLostSince = signal<number | undefined>(undefined);

/** Since when the page is out of date, as far as it knows; undefined while it is live. */
export const disconnectedSince = computed(() => streamLostSince.value ?? requestLostSince.value);

/** Calls each time that the service is back after an absence. @returns a function that ends it */
export function onReconnect(listener: () => void): () => void {
  let wasAway = false;
  return disconnectedSince.subscribe((since) => {
    const isBack = wasAway && since === undefined;
    wasAway = since !== undefined;
    if (isBack) listener();
  });
}
