import { isNotFound } from "../kubernetes/kubernetes-error.ts";
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
   * Names this candidate in the Lease. A candidate takes a Lease over at once that its own name holds, so the name belongs to
   * one process at a time: a pod's name will do, since its former container has ended before the next one starts.
   */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: ElectionTiming;
}

export interface ElectionTiming {
  /** For how long others leave a Lease alone after they saw it change. Whole seconds. */
  readonly leaseMs: number;
  /** After which a leader that could not renew stops to lead. What it lacks to `leaseMs` is left to calls under way. */
  readonly renewDeadlineMs: number;
  /** Between two renewals, and between two tries of a candidate. */
  readonly retryMs: number;
}

export const defaultTiming: ElectionTiming = {
  leaseMs: 15_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
};

/** The Lease as the API server has it now. */
export async function findLease(
  { client, name }: ElectionOptions,
  options: CallOptions,
): Promise<Stored<Lease> | undefined> {
  try {
    return await client.get(resources.leases, name, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** A Lease that the candidate holds from now on; the transitions of `before` are counted on. */
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
