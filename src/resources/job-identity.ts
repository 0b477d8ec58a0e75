import { createHash } from "node:crypto";
import { z } from "zod";
import { resourceLabels } from "../contract/resource-labels.ts";
import { batchJobId, composeId, isId } from "../contract/id.ts";
import { workerStep } from "../contract/worker.ts";

/** What identity is made of: the metadata of a CompressionJob or Batch. */
export interface IdentifiedResource {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

/** Step of a child Job, as its label has it; `work` is all of the work in one pod. */
export const jobStep = z.enum(["work", ...workerStep.options]);
export type JobStep = z.infer<typeof jobStep>;

/** Names of Jobs leave room for what the Job controller adds to name a pod: `-<index>-<5 characters>`, 63 in all. */
const maxWorkerJobName = 52;
const maxLabelValue = 63;
const hashLength = 10;
const childIndexPattern = /-(\d{4,})$/;

/**
 * Id of a CompressionJob in the REST interface. The label counts where it agrees with the name, as it does on every resource that the
 * service or the operator made; a copy under another name, which carries the label of its original along, is a job of its own.
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
 * Name of the child Job of a CompressionJob for a step: at most 52 characters and, since it becomes a host name, without dots; what
 * cannot stay makes way for a hash.
 */
export function workerJobName(name: string, step: JobStep): string {
  const text = `${name}-${step}`;
  return text.includes(".")
    ? truncateWithHash(text.replaceAll(".", "-"), text, maxWorkerJobName)
    : limitLength(text, maxWorkerJobName);
}

/** A resource's name as the value of a label: at most 63 characters, a hash in place of what would be cut. */
export function labelValue(name: string): string {
  return limitLength(name, maxLabelValue);
}

function isConsistentJobId({ name, labels }: IdentifiedResource["metadata"], id: string): boolean {
  if (name === id) return true;
  const batch = labels?.[resourceLabels.batchId];
  const [, index] = childIndexPattern.exec(name) ?? [];
  return isId("batch", batch) && index !== undefined && batchJobId(batch, Number(index)) === id;
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

/** As much of the text as fits, and a hash of what it stands for. */
function truncateWithHash(text: string, hashed: string, length: number): string {
  const hash = createHash("sha256").update(hashed).digest("hex").slice(0, hashLength);
  const prefix = text.slice(0, length - hashLength - 1).replace(/[^a-z0-9]+$/, "");
  return `${prefix}-${hash}`;
}
