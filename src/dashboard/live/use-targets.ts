import { useLive } from "./use-live.ts";
import { service } from "../session/service.ts";

/** The targets that jobs can be for; none until they are loaded. */
export function useTargets() {
  const { value, ...live } = useLive(() => service.call("listTargets", {}));
  return { targets: value?.targets ?? [], ...live };
}
