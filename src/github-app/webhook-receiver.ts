import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { acceptBaselineAction, isRerunnable, rerunAction } from "./check-run-actions.ts";
import { loadReportRows } from "./publication.ts";
import { ServiceError } from "../contract/errors.ts";
import type { BatchRequest } from "../contract/jobs/batch.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { Owner } from "../contract/people/principal.ts";
import type { Log } from "../log/json-log.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import type { AuditedChange } from "../records/people/audit-records.ts";

/** An event as GitHub delivers it. */
export interface WebhookEvent {
  /** The header X-Hub-Signature-256. */
  readonly signature: string | null;
  /** The header X-GitHub-Event. */
  readonly event: string | null;
  readonly body: Uint8Array;
}

interface WebhookReceiverOptions {
  readonly appId: string;
  readonly webhookSecret: string;
  readonly publicUrl: string;
  readonly records: Records;
  readonly submit: SubmitRerun;
  readonly log: Log;
}

const checkRunEvent = z.object({
  action: z.string(),
  check_run: z.object({
    id: z.int(),
    /** That of a job's check run is the job's id. */
    external_id: z.string().nullish(),
    app: z.object({ id: z.int() }),
  }),
  requested_action: z.object({ identifier: z.string() }).optional(),
  sender: z.object({ login: z.string() }),
});
type CheckRunEvent = z.infer<typeof checkRunEvent>;

/**
 * Performs the actions that users request by the buttons of check runs. Each event is processed
 * once, and one after the other.
 * @throws ServiceError unauthorized, malformed_request
 */
export function createWebhookReceiver(
  receiver: WebhookReceiverOptions,
): (event: WebhookEvent) => Promise<void> {
  let previous = Promise.resolve();
  return async (event) => {
    if (!hasValidSignature(event, receiver.webhookSecret)) {
      throw new ServiceError("unauthorized", "The event is not signed with the webhook's secret");
    }
    const checkRun = parseCheckRunEvent(event);
    if (checkRun === undefined || String(checkRun.check_run.app.id) !== receiver.appId) return;
    // Not the delivery's header: the signature covers only the body.
    const delivery = createHash("sha256").update(event.body).digest("hex");
    const done = previous.then(async () => processDelivery(receiver, delivery, checkRun));
    previous = done.catch(() => {});
    await done;
  };
}

function hasValidSignature({ signature, body }: WebhookEvent, secret: string): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const given = Buffer.from(signature ?? "");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Undefined for an event of another kind. */
function parseCheckRunEvent({ event, body }: WebhookEvent): CheckRunEvent | undefined {
  if (event !== "check_run") return undefined;
  try {
    return checkRunEvent.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)));
  } catch (cause) {
    throw new ServiceError("malformed_request", "The event is not about a check run", { cause });
  }
}

async function processDelivery(
  receiver: WebhookReceiverOptions,
  delivery: string,
  event: CheckRunEvent,
): Promise<void> {
  const { deliveries } = receiver.records;
  if (!(await deliveries.begin(delivery))) return;
  try {
    await performRequestedAction(receiver, event);
  } catch (error) {
    await deliveries.abandon(delivery);
    throw error;
  }
}

async function performRequestedAction(
  receiver: WebhookReceiverOptions,
  { action, check_run, requested_action, sender }: CheckRunEvent,
): Promise<void> {
  const { reports } = receiver.records;
  const report =
    (await reports.findByCheckRun(check_run.id)) ??
    (await reports.findByCheckedJob(check_run.external_id ?? ""));
  if (report === undefined) return;
  const button = action === "requested_action" ? requested_action?.identifier : undefined;
  const asked = { project: report.project, tokenId: null, tokenName: `${sender.login} on GitHub` };
  if (action === "rerequested" || button === rerunAction.identifier) {
    const audit = { ...asked, action: "rerunJobs" };
    const jobs = await rerunJobs(report, check_run, { ...receiver, audit });
    const fields = { report: report.id, jobs, by: sender.login };
    receiver.log("info", "Jobs are submitted again, as requested on GitHub", fields);
  } else if (button === acceptBaselineAction.identifier) {
    const audit = { ...asked, action: "acceptBaselines" };
    const batches = await acceptAsBaseline(report, receiver.records, audit);
    const fields = { report: report.id, batches, by: sender.login };
    receiver.log("info", "Results are made the baseline, as requested on GitHub", fields);
  }
}

/** Makes the results of a report the baseline. Gives the ids of its batches. */
async function acceptAsBaseline(
  report: ReportRecord,
  records: Records,
  audit: AuditedChange,
): Promise<string[]> {
  if (!report.isAcceptable) return [];
  const jobs = await records.reports.listJobs(report);
  const batches = [...new Set(jobs.flatMap(({ batchId }) => batchId ?? []))].toSorted();
  for (const batch of batches) await records.baselines.accept(report.project, batch, audit);
  await records.reports.accept(report);
  return batches;
}

/** Submits jobs again, which replace the former ones in a report. */
export type SubmitRerun = (
  owner: Owner,
  order: {
    readonly batch: BatchRequest;
    readonly jobs: readonly Job[];
    readonly report: ReportRecord;
    readonly audit: AuditedChange;
  },
) => Promise<unknown>;

/** Submits the jobs of a check run again that did not pass, and gives their number. */
async function rerunJobs(
  report: ReportRecord,
  { id: checkRun, external_id: jobId }: CheckRunEvent["check_run"],
  options: WebhookReceiverOptions & { readonly audit: AuditedChange },
): Promise<number> {
  const { records, publicUrl, submit, audit } = options;
  const owner = await records.owners.findOfBatch(report.id);
  if (owner === undefined) return 0;
  const rows = await loadReportRows(records, report, publicUrl);
  const asked = report.checkRun === checkRun ? rows : rows.filter(({ id }) => id === jobId);
  const jobs = asked.filter(isRerunnable).flatMap(({ job }) => job ?? []);
  if (jobs.length > 0) await submit(owner, { batch: report.request, jobs, report, audit });
  return jobs.length;
}
