import { apiGroup } from "./api-group.ts";

/**
 * Labels of what the service and the operator create. Few, since each label on a worker Job's pods
 * costs the API server 1 % of what the whole worker Job costs it.
 */
export const resourceLabels = {
  /** Id of the job in the REST interface. */
  jobId: `${apiGroup}/job-id`,
  /** Id of the batch in the REST interface. */
  batchId: `${apiGroup}/batch-id`,
  /**
   * Name of the CompressionJob that a worker Job or pod works for, where that is not the job's id;
   * hashed where it is too long for a label.
   */
  job: `${apiGroup}/job`,
  /** Name of the Batch that owns a CompressionJob, hashed where it is too long for a label. */
  batch: `${apiGroup}/batch`,
  /** Step of the work, where several pods work on the job. */
  step: `${apiGroup}/step`,
  /** Set by Kubernetes' Job controller on the pods of Jobs that have several. */
  completionIndex: "batch.kubernetes.io/job-completion-index",
  /** Queue of Kueue: worker Jobs are created suspended and wait to be admitted. */
  queue: "kueue.x-k8s.io/queue-name",
  /** Kueue's WorkloadPriorityClass of worker Jobs. */
  queuePriority: "kueue.x-k8s.io/priority-class",
} as const;

/**
 * On the worker Job of the step `shard`: how many pods will optimize a share each, also where the
 * target changes meanwhile.
 */
export const sharesAnnotation = `${apiGroup}/shares`;

/** On a worker Job: when the operator last changed it, so that it is synced again. */
export const syncRequestAnnotation = `${apiGroup}/sync-requested-at`;

/** Keeps a CompressionJob until the service has recorded its logs and result. */
export const recordFinalizer = `${apiGroup}/record`;
