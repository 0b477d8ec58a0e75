import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Assignment, TerminationMessage } from "../contract/worker-protocol/messages.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import { toJobError } from "./to-job-error.ts";
import { createReporter, EventSender, type Reporter } from "./reporter.ts";
import { runJob } from "./run-job.ts";
import { type ServiceConnection, ServiceOutage } from "./service-connection.ts";
import { errorMessage } from "../log/error-message.ts";

/** How a job's work ended. */
type AssignmentResult = Pick<TerminationMessage, "outcome" | "error">;

type ReportedResult = AssignmentResult & Required<Pick<TerminationMessage, "delivered">>;

interface WorkerContext {
  readonly connection: ServiceConnection;
  readonly openBlobs: () => Promise<BlobFiles>;
  readonly workDirectory: string;
  /** Aborted to stop the job, with a reason for its log. */
  readonly signal: AbortSignal;
  readonly printLine: (line: string) => void;
  readonly printError: (text: string) => void;
  readonly recordEvent: (json: string) => void;
  /** Shortest time between two reports of a job's progress, milliseconds. */
  readonly progressIntervalMs: number;
  /** How long the last events may take to be recorded, milliseconds. */
  readonly deliveryLimitMs: number;
  /** The same for a worker that is stopped. */
  readonly stopLimitMs: number;
  readonly onCancelled: () => void;
  /** Nothing can be reported to the service any more. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Runs a job and reports its result.
 * @throws ServiceOutage where the job needs the service, which cannot be reached
 */
export async function workOnAssignment(
  assignment: Assignment,
  context: WorkerContext,
): Promise<ReportedResult> {
  const { connection, signal, deliveryLimitMs, stopLimitMs } = context;
  const now = () => new Date();
  let hasEnded = false;
  const sender = new EventSender({
    connection,
    now,
    record: context.recordEvent,
    // The answer to a job's last events may be that the job has ended.
    onCancelled: () => (hasEnded ? undefined : context.onCancelled()),
    onFailure: (error) => (hasEnded ? undefined : context.onFailure(error)),
  });
  const { part, recipe } = assignment;
  // Parallel workers together report a job's progress as often as a single one.
  const workers = part?.step === "optimize" ? recipe.parallelism : 1;
  const progressIntervalMs = context.progressIntervalMs * workers;
  const reporter = createReporter({ sender, now, progressIntervalMs, print: context.printLine });
  const result = await runAndReportResult(assignment, reporter, context);
  hasEnded = true;
  const delivered = await sender.flush(signal.aborted ? stopLimitMs : deliveryLimitMs);
  sender.close();
  return { ...result, delivered };
}

async function runAndReportResult(
  assignment: Assignment,
  reporter: Reporter,
  context: WorkerContext,
): Promise<AssignmentResult> {
  const { connection, openBlobs, workDirectory, signal } = context;
  try {
    const directory = path.join(workDirectory, `attempt-${assignment.attempt}`);
    await mkdir(directory, { recursive: true });
    const locateSource = (source: string) => connection.locateSource(source, signal);
    const blobs = await openBlobs();
    const { relay } = connection;
    const scratch = { directory, workDirectory };
    await runJob(assignment, { blobs, ...scratch, reporter, signal, locateSource, relay });
    reporter.result("Completed");
    return { outcome: "Completed" };
  } catch (error) {
    if (signal.aborted) return reportStop(reporter, signal.reason);
    // Another worker may reach the service again: the job goes on.
    if (error instanceof ServiceOutage) {
      reporter.log(`The worker gives up: ${error.message}`, "stderr");
      throw error;
    }
    return reportFailure(reporter, error, context);
  }
}

function reportStop(reporter: Reporter, reason: unknown): AssignmentResult {
  reporter.log(`Stopped: ${errorMessage(reason)}`, "stderr");
  reporter.result("Cancelled");
  return { outcome: "Cancelled" };
}

function reportFailure(
  reporter: Reporter,
  error: unknown,
  { printError }: Pick<WorkerContext, "printError">,
): AssignmentResult {
  const failure = toJobError(error);
  reporter.log(`Failed: ${failure.message} (${failure.code})`, "stderr");
  if (failure.code === "worker_crashed" && error instanceof Error) {
    printError(error.stack ?? error.message);
  }
  reporter.result("Failed", failure);
  return { outcome: "Failed", error: failure };
}
