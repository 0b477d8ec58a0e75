import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: unknown = runInNewContext("gc");

/**
 * Frees what nothing reads any more, such as messages with outputs of models: Node itself does so
 * once 64 MB of them have come together, and how many there are at the peak differs between runs.
 */
export function collectGarbage(): void {
  if (typeof collect === "function") collect();
}
