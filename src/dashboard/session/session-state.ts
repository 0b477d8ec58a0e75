import { signal } from "@preact/signals";
import type { Self } from "../../contract/people/session.ts";
import { access } from "../shared/connection-state.ts";

/** Who is signed in; undefined until it is known, and where nobody is. */
export const self = signal<Self | undefined>(undefined);

export function sessionHasEnded(): void {
  access.value = "out";
}
