import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import { ProblemError } from "../client/problem-error.ts";

const timeoutMs = 5_000;

/** Requests the cancellation of batches. Gives whether the service accepted it for all of them. */
export async function cancelBatches(
  client: ServiceClient,
  ids: readonly string[],
): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs);
  const cancelled = await Promise.all(
    ids.map(async (id) => requestCancellation(client, id, signal)),
  );
  return cancelled.every(Boolean);
}

async function requestCancellation(
  client: ServiceClient,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.call("cancelBatch", { params: { id } }, { signal });
    core.info(`Batch ${id} is cancelled`);
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.code === "batch_finished") return true;
    core.warning(`Batch ${id} could not be cancelled: ${String(error)}`);
    return false;
  }
}
