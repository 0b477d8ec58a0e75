import { ignoreNotFound } from "../kubernetes/kubernetes-error.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { formatMicroTime } from "../kubernetes/micro-time.ts";
import { type Lease, resources, type Stored } from "../kubernetes/resources.ts";
import type { CallOptions } from "../kubernetes/transport.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "../log/json-log.ts";

export interface ElectionOptions {
  readonly client: KubernetesClient;
  /** Name of the Lease. */
  readonly name: string;
  /**
   * The `holderIdentity` of this candidate. A candidate acquires a Lease with its own identity at
   * once, so only one process may have it at a time. The name of a pod is suitable, since its
   * previous container has ended before the next one starts.
   */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: ElectionTiming | undefined;
}

export interface ElectionTiming {
  /** How long other candidates wait after a change of the Lease. Whole seconds. */
  readonly leaseMs: number;
  /**
   * After so long without renewal a leader stops to lead. The rest of `leaseMs` is for calls in
   * progress.
   */
  readonly renewDeadlineMs: number;
  /** Between two renewals, and between two attempts of a candidate. */
  readonly retryMs: number;
}

export const defaultTiming: ElectionTiming = {
  leaseMs: 15_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
};

export async function findLease(
  { client, name }: ElectionOptions,
  options: CallOptions,
): Promise<Stored<Lease> | undefined> {
  return ignoreNotFound(client.get(resources.leases, name, options));
}

/** The Lease with this candidate as its holder, and one more transition than `before`. */
export function acquiredLease(
  options: ElectionOptions,
  before: Lease | undefined,
): { spec: NonNullable<Lease["spec"]> } {
  const { leaseMs } = options.timing ?? defaultTiming;
  const now = formatMicroTime(options.clock.date().getTime());
  return {
    spec: {
      holderIdentity: options.identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: before === undefined ? 0 : (before.spec?.leaseTransitions ?? 0) + 1,
    },
  };
}

export function leaseHolder(lease: Lease): string | undefined {
  return lease.spec?.holderIdentity || undefined;
}
