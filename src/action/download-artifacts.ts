import { mkdir } from "node:fs/promises";
import path from "node:path";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import type { ServiceClient } from "./service-client.ts";
import type { ReportRow } from "../report/report.ts";

/**
 * Saves the artifacts of all completed jobs, in a folder for each job.
 * @throws UnreachableError
 */
export async function downloadArtifacts(
  client: ServiceClient,
  rows: readonly ReportRow[],
  { folder, signal }: { readonly folder: string; readonly signal: AbortSignal },
): Promise<void> {
  for (const { id, model, target, job } of rows) {
    if (job?.status !== "Completed" || job.artifacts.length === 0) continue;
    const jobFolder = path.join(folder, `${model}-${target}`);
    await mkdir(jobFolder, { recursive: true });
    for (const { name } of job.artifacts) {
      const file = path.join(jobFolder, name);
      await retryWhileUnreachable(
        async () => client.downloadArtifact(id, name, { file, signal }),
        signal,
      );
    }
  }
}
