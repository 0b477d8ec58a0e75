import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { JobOutcome } from "../contract/status.ts";
import type { Assignment } from "../contract/worker.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import { EventSender } from "./event-sender.ts";
import { jobFailure } from "./job-failure.ts";
import { createReporter, type Reporter } from "./reporter.ts";
import { runJob } from "./run-job.ts";
import type { ServiceConnection } from "./service-connection.ts";

/** How long a stopped worker tries to tell that it stopped. */
const farewellMs = 300;
const deliveryLimitMs = 5 * 60_000;

interface Workplace {
  readonly connection: ServiceConnection;
  readonly storageDirectory: string;
  readonly workDirectory: string;
  /** The job is to stop. */
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly onCancelled: () => void;
  /** The service cannot be told of the job any more. */
  readonly onFailure: (error: unknown) => void;
}

/** Runs a job and tells the service how it went. */
export async function workOnAssignment(assignment: Assignment, workplace: Workplace): Promise<JobOutcome> {
  const { signal, print } = workplace;
  const now = () => new Date();
  const sender = new EventSender({ ...workplace, now });
  const reporter = createReporter({ sender, now, print });
  const outcome = await outcomeOf(assignment, reporter, workplace);
  await sender.flush(signal.aborted ? farewellMs : deliveryLimitMs);
  return outcome;
}

async function outcomeOf(assignment: Assignment, reporter: Reporter, workplace: Workplace): Promise<JobOutcome> {
  const { storageDirectory, workDirectory, signal } = workplace;
  try {
    const directory = path.join(workDirectory, `attempt-${assignment.attempt}`);
    await mkdir(directory, { recursive: true });
    const blobs = await createDirectoryBlobStore(storageDirectory);
    await runJob(assignment, { blobs, directory, reporter, signal });
    reporter.result("Completed");
    return "Completed";
  } catch (error) {
    if (signal.aborted) {
      reporter.result("Cancelled");
      return "Cancelled";
    }
    const failure = jobFailure(error);
    reporter.log(`Failed: ${failure.message} (${failure.code})`, "stderr");
    if (failure.code === "worker_crashed" && error instanceof Error) workplace.print(error.stack ?? error.message);
    reporter.result("Failed", failure);
    return "Failed";
  }
}
