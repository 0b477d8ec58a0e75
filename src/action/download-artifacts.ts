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
  client: Pick<ServiceClient, "downloadArtifact">,
  rows: readonly ReportRow[],
  { folder, signal }: { readonly folder: string; readonly signal: AbortSignal },
): Promise<void> {
  const folders = nameFolders(rows);
  for (const [i, { id, job }] of rows.entries()) {
    if (job?.status !== "Completed" || job.artifacts.length === 0) continue;
    const jobFolder = path.join(folder, folders[i] ?? id);
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

/** `a` for `b-c` and `a-b` for `c` have one name, and some file systems take `A` for `a`. */
function nameFolders(rows: readonly ReportRow[]): string[] {
  const taken = new Set<string>();
  return rows.map(({ model, target }) => {
    const base = `${model}-${target}`;
    let name = base;
    for (let number = 2; taken.has(name.toLowerCase()); number++) name = `${base}-${number}`;
    taken.add(name.toLowerCase());
    return name;
  });
}
