import { createHash } from "node:crypto";
import { z } from "zod";
import { resourceLabels } from "../contract/custom-resources/resource-labels.ts";
import { batchJobId, composeId, isId, parseBatchChildName } from "../contract/id.ts";
import { workerStep } from "../contract/worker-protocol/messages.ts";

/** The metadata of a CompressionJob or Batch from which its id follows. */
interface IdentifiedResource {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

/** Step of a worker Job, the value of its label; `work` is all of the work in one pod. */
export const jobStep = z.enum(["work", ...workerStep.options]);
export type JobStep = z.infer<typeof jobStep>;

/** The Job controller appends `-<index>-<5 characters>` to name a pod, which is limited to 63. */
const maxWorkerJobName = 52;
const maxLabelValue = 63;
const hashLength = 10;

/**
 * Id of a CompressionJob in the REST interface: its label, where that agrees with its name, as it
 * does on resources that the service or the operator created. A copy under another name keeps the
 * label of the original but is another job, so its id is derived from its uid.
 */
export function resolveJobId({ metadata }: IdentifiedResource): string {
  const id = metadata.labels?.[resourceLabels.jobId];
  return isId("job", id) && isConsistentJobId(metadata, id) ? id : deriveId("job", metadata);
}

/** Id of a Batch in the REST interface. */
export function resolveBatchId({ metadata }: IdentifiedResource): string {
  const id = metadata.labels?.[resourceLabels.batchId];
  return isId("batch", id) && id === metadata.name ? id : deriveId("batch", metadata);
}

/**
 * Name of the worker Job of a CompressionJob for a step: at most 52 characters and, since it
 * becomes a host name, without dots. A hash replaces what does not fit. It ends with the step: by
 * that the chart's admission policy knows pods of workers.
 */
export function workerJobName(name: string, step: JobStep): string {
  const length = maxWorkerJobName - step.length - 1;
  const start = name.includes(".")
    ? truncateWithHash(name.replaceAll(".", "-"), name, length)
    : limitLength(name, length);
  return `${start}-${step}`;
}

/** A resource's name as a label value: at most 63 characters, with a hash in place of the rest. */
export function labelValue(name: string): string {
  return limitLength(name, maxLabelValue);
}

function isConsistentJobId({ name, labels }: IdentifiedResource["metadata"], id: string): boolean {
  if (name === id) return true;
  const batch = labels?.[resourceLabels.batchId];
  const child = parseBatchChildName(name);
  if (!isId("batch", batch) || child === undefined) return false;
  const isOfBatch = labels?.[resourceLabels.batch] === labelValue(child.batch);
  return isOfBatch && batchJobId(batch, child.index) === id;
}

function deriveId(
  prefix: "job" | "batch",
  { uid, creationTimestamp }: IdentifiedResource["metadata"],
): string {
  return composeId(prefix, {
    time: new Date(creationTimestamp),
    digest: createHash("sha256").update(uid).digest(),
  });
}

function limitLength(text: string, length: number): string {
  return text.length <= length ? text : truncateWithHash(text, text, length);
}

/** The start of the text and a hash of `hashed`, `length` characters at most. */
function truncateWithHash(text: string, hashed: string, length: number): string {
  const hash = createHash("sha256").update(hashed).digest("hex").slice(0, hashLength);
  const prefix = text.slice(0, length - hashLength - 1).replace(/[^a-z0-9]+$/, "");
  return `${prefix}-${hash}`;
}
