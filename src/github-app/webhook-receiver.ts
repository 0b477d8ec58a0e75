import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { acceptBaselineAction, isRerunnable, rerunAction } from "./check-run-actions.ts";
import { loadReportRows, reportCheckName } from "./publication.ts";
import { ServiceError } from "../contract/errors.ts";
import type { Owner } from "../contract/people/principal.ts";
import type { Log } from "../log/json-log.ts";
import type { RepeatableJob } from "../records/jobs/batch-records.ts";
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

const app = z.object({ id: z.int() });
const sender = z.object({ login: z.string() });

const checkRunEvent = z.object({
  action: z.string(),
  check_run: z.object({
    id: z.int(),
    /** That of a job's check run is the job's id. */
    external_id: z.string().nullish(),
    app,
  }),
  requested_action: z.object({ identifier: z.string() }).optional(),
  sender,
});
type CheckRunEvent = z.infer<typeof checkRunEvent>;

/** About all check runs of one app on a commit. */
const checkSuiteEvent = z.object({
  action: z.string(),
  check_suite: z.object({ head_sha: z.string(), app: app.nullable() }),
  repository: z.object({ id: z.int(), full_name: z.string() }),
  sender,
});
type CheckSuiteEvent = z.infer<typeof checkSuiteEvent>;

const eventSchemas = new Map<string | null, typeof checkRunEvent | typeof checkSuiteEvent>([
  ["check_run", checkRunEvent],
  ["check_suite", checkSuiteEvent],
]);

/**
 * Performs the actions that users request by the buttons of check runs and of GitHub. Each event is
 * processed once, and one after the other.
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
    const asked = parseEvent(event);
    if (asked === undefined || findAppId(asked) !== receiver.appId) return;
    // Not the delivery's header: the signature covers only the body.
    const delivery = createHash("sha256").update(event.body).digest("hex");
    const done = previous.then(async () => processDelivery(receiver, delivery, asked));
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
function parseEvent({ event, body }: WebhookEvent): CheckRunEvent | CheckSuiteEvent | undefined {
  const schema = eventSchemas.get(event);
  try {
    return schema?.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)));
  } catch (cause) {
    const message = "The event is not of the kind that its header X-GitHub-Event says";
    throw new ServiceError("malformed_request", message, { cause });
  }
}

function findAppId(event: CheckRunEvent | CheckSuiteEvent): string | undefined {
  return ("check_suite" in event ? event.check_suite : event.check_run).app?.id.toString();
}

async function processDelivery(
  receiver: WebhookReceiverOptions,
  delivery: string,
  event: CheckRunEvent | CheckSuiteEvent,
): Promise<void> {
  const { githubEvents } = receiver.records;
  if (!(await githubEvents.begin(delivery))) return;
  try {
    if ("check_suite" in event) await rerunSuite(receiver, event);
    else await performRequestedAction(receiver, event);
  } catch (error) {
    await githubEvents.abandon(delivery);
    throw error;
  }
}

/** Re-runs the newest batch of each check of a commit. */
async function rerunSuite(
  receiver: WebhookReceiverOptions,
  { action, check_suite, repository, sender: { login } }: CheckSuiteEvent,
): Promise<void> {
  if (action !== "rerequested") return;
  const { id: repositoryNumber, full_name: name } = repository;
  const commit = { repository: name, repositoryNumber, sha: check_suite.head_sha };
  const reports = await receiver.records.reports.listOfCommit(commit);
  const newest = new Map(reports.map((report) => [reportCheckName(report), report]));
  for (const report of newest.values()) await rerunJobs(receiver, { report, login });
}

async function performRequestedAction(
  receiver: WebhookReceiverOptions,
  { action, check_run, requested_action, sender: { login } }: CheckRunEvent,
): Promise<void> {
  const { reports } = receiver.records;
  const jobId = check_run.external_id ?? "";
  const ofBatch = await reports.findByCheckRun(check_run.id);
  const report = ofBatch ?? (await reports.findByCheckedJob(jobId));
  if (report === undefined) return;
  const button = action === "requested_action" ? requested_action?.identifier : undefined;
  if (action === "rerequested" || button === rerunAction.identifier) {
    await rerunJobs(receiver, { report, login, jobId: ofBatch ? undefined : jobId });
  } else if (button === acceptBaselineAction.identifier) {
    const audit = { ...describeAsker(report, login), action: "acceptBaselines" };
    const batches = await acceptAsBaseline(report, receiver.records, audit);
    const fields = { report: report.id, batches, by: login };
    receiver.log("info", "Results are made the baseline, as requested on GitHub", fields);
  }
}

function describeAsker({ project }: ReportRecord, login: string) {
  return { project, tokenId: null, tokenName: `${login} on GitHub` };
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

/** Submits jobs again, which replace the earlier ones in a report. */
export type SubmitRerun = (
  owner: Owner,
  order: {
    readonly batch: ReportRecord["request"];
    readonly jobs: readonly RepeatableJob[];
    readonly report: ReportRecord;
    readonly audit: AuditedChange;
  },
) => Promise<unknown>;

/** Submits the jobs of a report, or one of them, again where they did not pass. */
async function rerunJobs(
  { records, publicUrl, submit, log }: WebhookReceiverOptions,
  { report, login, jobId }: { report: ReportRecord; login: string; jobId?: string | undefined },
): Promise<void> {
  const owner = await records.owners.findOfBatch(report.id);
  if (owner === undefined) return;
  const rows = await loadReportRows(records, report, publicUrl);
  const asked = jobId === undefined ? rows : rows.filter(({ id }) => id === jobId);
  const jobs = asked.filter(isRerunnable).flatMap(({ job }) => job ?? []);
  if (jobs.length === 0) return;
  const audit = { ...describeAsker(report, login), action: "rerunJobs" };
  await submit(owner, { batch: report.request, jobs, report, audit });
  const fields = { report: report.id, jobs: jobs.length, by: login };
  log("info", "Jobs are submitted again, as requested on GitHub", fields);
}
