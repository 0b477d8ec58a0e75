import { z } from "zod";
import { jobId } from "../contract/id.ts";
import { workerExit } from "../contract/worker.ts";
import { connectService } from "./service-connection.ts";
import { onStopRequest } from "./stop-request.ts";
import { workOnAssignment } from "./work-on-assignment.ts";

/** A worker that was told to stop ends after this time, whatever it is doing. */
const stopLimitMs = 800;

const environment = z.object({
  MOS_SERVICE_URL: z.url(),
  MOS_JOB_ID: jobId,
  MOS_JOB_TOKEN: z.string().min(1),
  MOS_STORAGE_DIR: z.string().min(1),
  MOS_WORK_DIR: z.string().min(1),
});

const exitCodes = { Completed: workerExit.completed, Failed: workerExit.failed, Cancelled: workerExit.cancelled };

const stop = new AbortController();

function stopFor(reason: string): void {
  if (stop.signal.aborted) return;
  print(`Stopping: ${reason}`);
  setTimeout(() => process.exit(workerExit.cancelled), stopLimitMs);
  stop.abort();
}

function crash(error: unknown): never {
  process.stderr.write(`The worker cannot go on: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(workerExit.crashed);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<number> {
  const settings = environment.parse(process.env);
  onStopRequest(stopFor);
  const { MOS_SERVICE_URL: url, MOS_JOB_ID: id, MOS_JOB_TOKEN: token } = settings;
  const connection = connectService({ url, jobId: id, token });
  const outcome = await workOnAssignment(await connection.findAssignment(stop.signal), {
    connection,
    storageDirectory: settings.MOS_STORAGE_DIR,
    workDirectory: settings.MOS_WORK_DIR,
    signal: stop.signal,
    print,
    onCancelled: () => stopFor("the job was cancelled"),
    onFailure: crash,
  });
  return exitCodes[outcome];
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => (stop.signal.aborted ? process.exit(workerExit.cancelled) : crash(error)),
);
