/** What all workers of an installation have in common. */
export interface WorkerSettings {
  /** URL of the service as pods reach it. */
  readonly serviceUrl: string;
  /** Whether their pods name the user that they run as; else the cluster chooses it. */
  readonly hasOwnUser: boolean;
  /** For targets without an image of their own. */
  readonly image: string;
  readonly serviceAccount: string;
  /** How long a worker Job and its pods stay after they ended. */
  readonly ttlSeconds: number;
}

export interface JobSettings extends WorkerSettings {
  /** Of resources without one of their own; undefined where they stay for good. */
  readonly resourceTtlSeconds?: number | undefined;
  /** The longest deadline, and that of jobs without one of their own. */
  readonly deadlineSeconds: number;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}
