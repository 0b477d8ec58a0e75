import type { ServiceClient } from "./service-client.ts";
import { InputError } from "./input-error.ts";

/** @throws InputError for targets that the service does not have */
export async function checkTargets(
  client: ServiceClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { targets } = await client.call("listTargets", {}, { signal });
  const known = targets.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const message = `The service has no target ${unknown.join(", ")}; it has ${known.join(", ")}`;
  throw new InputError([{ message }]);
}
