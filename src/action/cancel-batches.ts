import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import { ProblemError } from "../client/problem-error.ts";

const limitMs = 5_000;

/** Cancels batches at once. Gives whether the service took note of it for all of them. */
export async function cancelBatches(client: Client, ids: readonly string[]): Promise<boolean> {
  const signal = AbortSignal.timeout(limitMs);
  const cancelled = await Promise.all(
    ids.map(async (id) => {
      try {
        await client.call("cancelBatch", { params: { id } }, { signal });
        core.info(`Batch ${id} is cancelled`);
        return true;
      } catch (error) {
        if (error instanceof ProblemError && error.problem.code === "batch_finished") return true;
        core.warning(`Batch ${id} could not be cancelled: ${String(error)}`);
        return false;
      }
    }),
  );
  return cancelled.every(Boolean);
}
