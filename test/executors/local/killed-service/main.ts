import { fileURLToPath } from "node:url";
import { createLocalExecutor } from "../../../../src/executors/local/local-executor.ts";
import { openRecords } from "../../../../src/records/open-records.ts";
import { createDirectoryBlobStore } from "../../../../src/storage/directory-blob-store.ts";
import { listenForWorkers } from "../worker-endpoint.ts";
import { inheritedEnvironment } from "../../../support/inherited-environment.ts";

/** Works on the jobs that are recorded in a folder, and prints their lines, until it is killed. */
const [, , folder = ""] = process.argv;
const records = await openRecords(`${folder}/records.db`, { now: () => new Date() });
const left = await records.attempts.listUnfinished();
const blobs = await createDirectoryBlobStore(`${folder}/storage`);
const { url, answer } = await listenForWorkers(records, blobs);
await createLocalExecutor({
  records,
  serviceUrl: url,
  answerWorker: answer,
  blobs,
  workDirectory: `${folder}/work`,
  concurrency: 2,
  environment: inheritedEnvironment(),
  log: (message) => process.stderr.write(`${message}\n`),
  workerPath: fileURLToPath(new URL("../stand-in-worker/main.ts", import.meta.url)),
});
await Promise.all(left.map(({ jobId }) => printLines(jobId)));

async function printLines(jobId: string): Promise<void> {
  let after = 0;
  for await (const _ of records.changes.watch(jobId, new AbortController().signal)) {
    for (const line of await records.logs.readPage(jobId, after)) {
      after = line.seq;
      process.stdout.write(`${line.text}\n`);
    }
  }
}
