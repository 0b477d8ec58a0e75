import { isConflict, isNotFound } from "../kubernetes/kubernetes-error.ts";
import { formatMicroTime } from "../kubernetes/micro-time.ts";
import { type Lease, resources, type Stored } from "../kubernetes/resources.ts";
import type { CallOptions } from "../kubernetes/transport.ts";
import { elapsedMs, type Moment, takeMoment, sleepUnlessAborted } from "./clock.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import {
  acquiredLease,
  type ElectionOptions,
  type ElectionTiming,
  findLease,
  leaseHolder,
} from "./lease-record.ts";

/** A refused write: another process may be the leader. */
export class NotLeaderError extends Error {
  override readonly name = "NotLeaderError";
}

export interface Leadership {
  /** Aborted with the reason when the leadership is lost. */
  readonly lost: AbortSignal;
  /**
   * False as soon as the Lease has not been renewed for so long that another candidate may soon
   * acquire it, even if this process was suspended and `lost` is not aborted yet.
   */
  isLeader(): boolean;
  /** To be called before every write. Throws `NotLeaderError`. */
  assertLeader(): void;
  /** Releases the Lease. The caller has to end all work of the leader before. */
  release(): Promise<void>;
}

/**
 * Renews the Lease until it is lost or released. It was acquired by a request sent at `acquiredAt`.
 */
export function startLeaseRenewal(
  options: ElectionOptions & { timing: ElectionTiming },
  lease: Stored<Lease>,
  acquiredAt: Moment,
) {
  return new LeaseRenewer(options, lease, acquiredAt);
}

class LeaseRenewer implements Leadership {
  readonly #options: ElectionOptions & { readonly timing: ElectionTiming };
  readonly #lost = new AbortController();
  readonly #releasing = new AbortController();
  readonly #renewing: Promise<void>;
  #lease: Stored<Lease>;
  #renewedAt: Moment;
  #cancelDeadline: () => void = () => {};

  constructor(
    options: ElectionOptions & { timing: ElectionTiming },
    lease: Stored<Lease>,
    acquiredAt: Moment,
  ) {
    this.#options = options;
    this.#lease = lease;
    this.#renewedAt = acquiredAt;
    this.#scheduleRenewDeadline();
    this.#renewing = this.#renewUntilEnd();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  isLeader(): boolean {
    const { clock, timing } = this.#options;
    const hasEnded = this.#lost.signal.aborted || this.#releasing.signal.aborted;
    return !hasEnded && elapsedMs(clock, this.#renewedAt) < timing.renewDeadlineMs;
  }

  assertLeader(): void {
    if (!this.isLeader()) {
      throw new NotLeaderError(`"${this.#options.identity}" does not lead any more`);
    }
  }

  async release(): Promise<void> {
    this.#releasing.abort();
    this.#cancelDeadline();
    await this.#renewing;
    if (this.#lost.signal.aborted) return;
    try {
      await this.#releaseLease();
    } catch (error) {
      this.#options.log("warn", "Cannot release the lease: others acquire it when it expires", {
        error: errorMessageWithCauses(error),
      });
    }
  }

  async #renewUntilEnd(): Promise<void> {
    const { clock, timing, log } = this.#options;
    const end = AbortSignal.any([this.#lost.signal, this.#releasing.signal]);
    for (;;) {
      await sleepUnlessAborted(clock, timing.retryMs, end);
      if (end.aborted) return;
      if (!this.isLeader()) {
        this.#endLeadership("The lease was not renewed in time");
        continue;
      }
      await this.#renew().catch((error: unknown) =>
        log("warn", "Cannot renew the lease", { error: errorMessageWithCauses(error) }),
      );
    }
  }

  async #renew(): Promise<void> {
    const at = takeMoment(this.#options.clock);
    const renewed = await this.#writeRenewal();
    if (renewed === undefined || this.#lost.signal.aborted) return;
    this.#lease = renewed;
    this.#renewedAt = at;
    this.#scheduleRenewDeadline();
  }

  async #writeRenewal(): Promise<Stored<Lease> | undefined> {
    const { client, name, identity } = this.#options;
    try {
      return await this.#replaceLease(this.#lease);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
    const lease = await findLease(this.#options, this.#callOptions());
    if (lease === undefined) {
      const created = { metadata: { name }, ...acquiredLease(this.#options, this.#lease) };
      return client.create(resources.leases, created, this.#callOptions());
    }
    if (leaseHolder(lease) === identity) return this.#replaceLease(lease);
    this.#endLeadership(`The lease is now held by "${leaseHolder(lease) ?? ""}"`);
    return undefined;
  }

  #replaceLease(lease: Stored<Lease>): Promise<Stored<Lease>> {
    const { client, clock } = this.#options;
    const renewTime = formatMicroTime(clock.date().getTime());
    const renewed = { ...lease, spec: { ...lease.spec, renewTime } };
    return client.replace(resources.leases, renewed, this.#callOptions());
  }

  async #releaseLease(): Promise<void> {
    const { client, identity } = this.#options;
    const lease = await findLease(this.#options, this.#callOptions());
    if (lease === undefined || leaseHolder(lease) !== identity) return;
    const { holderIdentity: _, ...spec } = lease.spec ?? {};
    await client.replace(resources.leases, { ...lease, spec }, this.#callOptions());
  }

  #scheduleRenewDeadline(): void {
    const { clock, timing } = this.#options;
    this.#cancelDeadline();
    const left = timing.renewDeadlineMs - elapsedMs(clock, this.#renewedAt);
    this.#cancelDeadline = clock.schedule(Math.max(0, left), () =>
      this.#endLeadership("The lease was not renewed in time"),
    );
  }

  #endLeadership(reason: string): void {
    this.#cancelDeadline();
    this.#lost.abort(new NotLeaderError(reason));
  }

  /** A call counts as silent after a third of its deadline: slow disks take seconds for a write. */
  #callOptions(): CallOptions {
    return { signal: this.#lost.signal, deadlineMs: this.#options.timing.renewDeadlineMs };
  }
}
