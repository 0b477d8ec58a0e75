import type { Pod } from "../../../../src/kubernetes/resources.ts";

type PodSpec = NonNullable<Pod["spec"]>;
type Container = PodSpec["containers"][number];

/** What all workers of an installation have in common. */
export interface WorkerSettings {
  /** URL of the service as pods reach it. */
  readonly serviceUrl: string;
  /** In their pods, of the authority that signed the service's certificate. */
  readonly serviceCaFile?: string | undefined;
  /** Whether their pods name the user that they run as; else the cluster chooses it. */
  readonly hasOwnUser: boolean;
  /** For targets without an image of their own. */
  readonly image: string;
  readonly imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly serviceAccount: string;
  /** Volumes with models for `file://` sources. */
  readonly volumes: NonNullable<PodSpec["volumes"]>;
  readonly volumeMounts: NonNullable<Container["volumeMounts"]>;
  /** How long a worker Job and its pods stay after they ended. */
  readonly ttlSeconds: number;
}

export interface JobSettings extends WorkerSettings {
  /** Of resources without one of their own; undefined where they stay for good. */
  readonly resourceTtlSeconds?: number | undefined;
  /** For jobs without a deadline of their own. */
  readonly deadlineSeconds: number;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}
