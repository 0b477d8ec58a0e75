import type { ServiceClient } from "./service-client.ts";
import type { Batch } from "../contract/jobs/batch.ts";

/** Batches by their ids, as they are now. */
export async function getBatches(
  client: ServiceClient,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Batch[]> {
  return Promise.all(
    ids.map(async (id) => client.call("getBatch", { params: { id } }, { signal })),
  );
}
