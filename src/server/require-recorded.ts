import { ServiceError } from "../contract/errors.ts";
import type { ServerContext } from "./server-context.ts";

/**
 * Refuses to delete jobs whose custom resources would wait for ever for their records.
 * @throws ServiceError job_unfinished
 */
export function requireRecorded(
  { executor }: Pick<ServerContext, "executor">,
  jobIds: readonly string[],
): void {
  const waiting = jobIds.find((id) => executor.awaitsRecord?.(id));
  if (waiting === undefined) return;
  const message = `Job "${waiting}" cannot be deleted yet: its resource is not recorded`;
  throw new ServiceError("job_unfinished", message, { headers: { "retry-after": "5" } });
}
