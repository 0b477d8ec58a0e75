import { z } from "zod";
import { workerStop } from "../contract/worker-protocol/messages.ts";
import { jobId } from "../contract/id.ts";

const commonVariables = {
  MOS_SERVICE_URL: z.url(),
  MOS_JOB_ID: jobId,
  MOS_WORK_DIR: z.string().min(1),
};

/** The environment of a worker, but for `MOS_TERMINATION_LOG`. */
export const workerSettings = z.union([
  /** A process of a service on this machine. */
  z.object({
    ...commonVariables,
    MOS_JOB_TOKEN: z.string().min(1),
    MOS_STORAGE_DIR: z.string().min(1),
    /** Where the service answers a worker that has no network. */
    MOS_SERVICE_SOCKET: z.string().min(1).optional(),
  }),
  /** A pod. Its token is replaced from time to time; its output is a second copy of its events. */
  z.object({
    ...commonVariables,
    MOS_JOB_TOKEN_FILE: z.string().min(1),
    /** How long a stopped worker tries to deliver its last events. */
    MOS_STOP_SECONDS: z.coerce.number().min(1).default(workerStop.deliverySeconds),
  }),
]);

export type WorkerSettings = z.infer<typeof workerSettings>;
