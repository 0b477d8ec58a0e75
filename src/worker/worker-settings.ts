import { z } from "zod";
import { formatProblems } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";
import { workerStop } from "../contract/worker-protocol/messages.ts";
import { jobId } from "../contract/id.ts";
import { WorkerSettingsError } from "./job-end.ts";

const commonVariables = {
  MOS_SERVICE_URL: z.url(),
  MOS_JOB_ID: jobId,
  MOS_WORK_DIR: z.string().min(1),
};

/** A process of a service on this machine. */
const processSettings = z.object({
  ...commonVariables,
  MOS_JOB_TOKEN: z.string().min(1),
  MOS_STORAGE_DIR: z.string().min(1),
  /** Where the service answers a worker that has no network. */
  MOS_SERVICE_SOCKET: z.string().min(1).optional(),
});

/** A pod. Its token is replaced from time to time; its output is a second copy of its events. */
const podSettings = z.object({
  ...commonVariables,
  MOS_JOB_TOKEN_FILE: z.string().min(1),
  /** How long a stopped worker tries to deliver its last events. */
  MOS_STOP_SECONDS: z.coerce.number().min(1).default(workerStop.deliverySeconds),
});

export type WorkerSettings = z.infer<typeof processSettings> | z.infer<typeof podSettings>;

/**
 * The environment of a worker, but for `MOS_TERMINATION_LOG`. One that has no `MOS_JOB_TOKEN` is a
 * pod's.
 * @throws WorkerSettingsError that names every invalid variable
 */
export function readWorkerSettings(environment: NodeJS.ProcessEnv): WorkerSettings {
  const schema = environment["MOS_JOB_TOKEN"] === undefined ? podSettings : processSettings;
  const { data, problems } = parseInput<z.ZodType<WorkerSettings>>(schema, environment);
  if (problems === undefined) return data;
  throw new WorkerSettingsError(`The worker's settings are invalid\n${formatProblems(problems)}`);
}
