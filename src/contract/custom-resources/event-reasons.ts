/**
 * Reasons of events and conditions besides those that follow from status reasons and error codes,
 * and what they mean.
 */
export const eventReasonTable = {
  AttemptStarted:
    "A pod does the work, or a share of it, once more, in place of one that was lost.",
  BatchTooLarge: "The batch's models or recipe would make jobs of too many bytes.",
  Cancelled: "The job was cancelled and none of its processes runs any more.",
  Completed: "The job, or every job of the batch, is Completed.",
  Failed: "The job, or a job of the batch, has failed.",
  FailedCreate: "The batch's next CompressionJob could not be created; it is tried again.",
  JobFailed: "A job of the batch has failed.",
  NameConflict: "Another resource has the name that a job of the batch needs.",
  PodLost:
    "A pod of the job was evicted, preempted, deleted or failed, and another takes its place.",
  Resumed: "The batch's jobs are resumed.",
  Scheduled: "Every pod of the step has a node.",
  Started: "The Job of the job's next step was created.",
  Suspended: "The batch's jobs are suspended.",
  SyncRequested:
    "A worker Job had no pod for a minute more than Kubernetes' Job controller waits: it is asked " +
    "to sync the Job.",
} as const;
export type EventReason = keyof typeof eventReasonTable;
