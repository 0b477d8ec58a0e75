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

/** A write that must not happen, because another process may lead by now. */
export class NotLeaderError extends Error {
  override readonly name = "NotLeaderError";
}

export interface Leadership {
  /** Aborted, with the reason, once and for all when the leadership is over against our will. */
  readonly lost: AbortSignal;
  /**
   * False as soon as the Lease was not renewed for so long that another candidate could soon take it, also where this process
   * stood still meanwhile and has not noticed anything yet.
   */
  isLeader(): boolean;
  /** Goes before every write. Throws `NotLeaderError`. */
  assertLeader(): void;
  /** Hands the Lease to the next candidate. Whoever calls it has ended all work of the leader. */
  release(): Promise<void>;
}

/** Renews the Lease, that was claimed with a request made at `claimedAt`, until it is lost or released. */
export function startLeaseRenewal(
  options: ElectionOptions & { timing: ElectionTiming },
  lease: Stored<Lease>,
  claimedAt: Moment,
) {
  return new LeaseRenewer(options, lease, claimedAt);
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
    claimedAt: Moment,
  ) {
    this.#options = options;
    this.#lease = lease;
    this.#renewedAt = claimedAt;
    this.#scheduleRenewDeadline();
    this.#renewing = this.#renewUntilOver();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  isLeader(): boolean {
    const { clock, timing } = this.#options;
    const over = this.#lost.signal.aborted || this.#releasing.signal.aborted;
    return !over && elapsedMs(clock, this.#renewedAt) < timing.renewDeadlineMs;
  }

  assertLeader(): void {
    if (!this.isLeader())
      throw new NotLeaderError(`"${this.#options.identity}" does not lead any more`);
  }

  async release(): Promise<void> {
    this.#releasing.abort();
    this.#cancelDeadline();
    await this.#renewing;
    if (this.#lost.signal.aborted) return;
    try {
      await this.#releaseLease();
    } catch (error) {
      this.#options.log("warn", "Cannot release the lease: others take it when it has run out", {
        error: errorMessageWithCauses(error),
      });
    }
  }

  async #renewUntilOver(): Promise<void> {
    const { clock, timing, log } = this.#options;
    const over = AbortSignal.any([this.#lost.signal, this.#releasing.signal]);
    for (;;) {
      await sleepUnlessAborted(clock, timing.retryMs, over);
      if (over.aborted) return;
      if (!this.isLeader()) this.#endLeadership("The lease was not renewed in time");
      else
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
      return await client.replace(
        resources.leases,
        this.#renewedLease(this.#lease),
        this.#callOptions(),
      );
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
    const lease = await findLease(this.#options, this.#callOptions());
    if (lease === undefined) {
      return client.create(
        resources.leases,
        { metadata: { name }, ...acquiredLease(this.#options, this.#lease) },
        this.#callOptions(),
      );
    }
    if (leaseHolder(lease) === identity)
      return client.replace(resources.leases, this.#renewedLease(lease), this.#callOptions());
    this.#endLeadership(`The lease is now held by "${leaseHolder(lease) ?? ""}"`);
    return undefined;
  }

  #renewedLease(lease: Stored<Lease>): Stored<Lease> {
    const renewTime = formatMicroTime(this.#options.clock.date().getTime());
    return { ...lease, spec: { ...lease.spec, renewTime } };
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

  /** Leaves time for a second try. */
  #callOptions(): CallOptions {
    return { signal: this.#lost.signal, deadlineMs: this.#options.timing.renewDeadlineMs / 2 };
  }
}
