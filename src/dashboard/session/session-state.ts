import { signal } from "@preact/signals";
import type { Self } from "../../contract/people/session.ts";

/** Who is signed in; undefined until it is known, and where nobody is. */
export const self = signal<Self | undefined>(undefined);

/** `unknown` until the service was asked. */
export const access = signal<"unknown" | "in" | "out">("unknown");

export function sessionHasEnded(): void {
  access.value = "out";
}
