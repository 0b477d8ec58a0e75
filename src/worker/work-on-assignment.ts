import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Assignment, TerminationMessage } from "../contract/worker.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import { EventSender } from "./event-sender.ts";
import { toJobError } from "./to-job-error.ts";
import { createReporter, type Reporter } from "./reporter.ts";
import { runJob } from "./run-job.ts";
import { type ServiceConnection, ServiceOutage } from "./service-connection.ts";
import { errorMessage } from "../log/error-message.ts";

/** How long a stopped worker tries to tell that it stopped. */
const stopReportMs = 300;

/** How a job's work ended. */
export type AssignmentResult = Pick<TerminationMessage, "outcome" | "error">;

interface WorkerContext {
  readonly connection: ServiceConnection;
  readonly openBlobs: () => Promise<BlobFiles>;
  readonly workDirectory: string;
  /** The job is to stop, for a reason that people understand. */
  readonly signal: AbortSignal;
  readonly printLine: (line: string) => void;
  readonly printError: (text: string) => void;
  readonly recordEvent: (json: string) => void;
  /** How often the progress of a job is told, milliseconds. */
  readonly progressIntervalMs: number;
  /** How long the last events may take to be recorded, milliseconds. */
  readonly deliveryLimitMs: number;
  readonly onCancelled: () => void;
  /** The service cannot be told of the job any more. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Runs a job and tells the service how it went.
 * @throws ServiceOutage where the job needs the service, and it cannot be reached
 */
export async function workOnAssignment(
  assignment: Assignment,
  context: WorkerContext,
): Promise<AssignmentResult> {
  const { connection, signal, deliveryLimitMs } = context;
  const now = () => new Date();
  let hasEnded = false;
  const sender = new EventSender({
    connection,
    now,
    record: context.recordEvent,
    // The answer to a job's last events may be that it is over.
    onCancelled: () => (hasEnded ? undefined : context.onCancelled()),
    onFailure: (error) => (hasEnded ? undefined : context.onFailure(error)),
  });
  const { part, recipe } = assignment;
  // Workers beside each other tell a job's progress as often, together, as one that works alone.
  const workers = part?.step === "optimize" ? recipe.parallelism : 1;
  const progressIntervalMs = context.progressIntervalMs * workers;
  const reporter = createReporter({ sender, now, progressIntervalMs, print: context.printLine });
  const result = await runAndReportResult(assignment, reporter, context);
  hasEnded = true;
  await sender.flush(signal.aborted ? stopReportMs : deliveryLimitMs);
  sender.close();
  return result;
}

async function runAndReportResult(
  assignment: Assignment,
  reporter: Reporter,
  context: WorkerContext,
): Promise<AssignmentResult> {
  const { openBlobs, workDirectory, signal } = context;
  try {
    const directory = path.join(workDirectory, `attempt-${assignment.attempt}`);
    await mkdir(directory, { recursive: true });
    await runJob(assignment, { blobs: await openBlobs(), directory, reporter, signal });
    reporter.result("Completed");
    return { outcome: "Completed" };
  } catch (error) {
    if (signal.aborted) {
      reporter.log(`Stopped: ${errorMessage(signal.reason)}`, "stderr");
      reporter.result("Cancelled");
      return { outcome: "Cancelled" };
    }
    // Another worker may find the service again: this is not the job's end.
    if (error instanceof ServiceOutage) {
      reporter.log(`The worker gives up: ${error.message}`, "stderr");
      throw error;
    }
    const failure = toJobError(error);
    reporter.log(`Failed: ${failure.message} (${failure.code})`, "stderr");
    if (failure.code === "worker_crashed" && error instanceof Error)
      context.printError(error.stack ?? error.message);
    reporter.result("Failed", failure);
    return { outcome: "Failed", error: failure };
  }
}
