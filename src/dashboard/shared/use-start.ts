import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { randomKey } from "./random-key.ts";

/** Headers of a request that starts something; the same body has the same ones. */
export type HeadersOf = (body: unknown) => { readonly "idempotency-key": string };

/**
 * For a form or a button that starts something: a second click starts nothing while the first is
 * answered, and a try after a failure starts nothing again that was started.
 */
export function useStart() {
  const isStarting = useSignal(false);
  const keys = useRef(new Map<string, string>()).current;
  const headersOf: HeadersOf = (body) => {
    const text = JSON.stringify(body);
    const key = keys.get(text) ?? randomKey();
    keys.set(text, key);
    return { "idempotency-key": key };
  };
  const start = async <T>(work: (headersOf: HeadersOf) => Promise<T>): Promise<T | undefined> => {
    if (isStarting.peek()) return undefined;
    isStarting.value = true;
    try {
      return await work(headersOf);
    } finally {
      isStarting.value = false;
    }
  };
  return { start, isStarting };
}
