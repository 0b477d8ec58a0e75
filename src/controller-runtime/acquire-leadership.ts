import { isAlreadyExists, isConflict } from "../kubernetes/kubernetes-error.ts";
import { type Lease, resources, type Stored } from "../kubernetes/resources.ts";
import { takeMoment, sleepUnlessAborted } from "./clock.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import { startLeaseRenewal, type Leadership } from "./leadership.ts";
import {
  acquiredLease,
  defaultTiming,
  type ElectionOptions,
  type ElectionTiming,
  findLease,
  leaseHolder,
} from "./lease-record.ts";

/**
 * Waits until this candidate holds the Lease. The clocks of other candidates do not matter: a Lease
 * has expired when this candidate has observed no change for its duration. Retries while the API
 * server is unavailable; throws only the reason of the signal.
 */
export async function acquireLeadership(
  options: ElectionOptions,
  signal: AbortSignal,
): Promise<Leadership> {
  const candidate = new LeaderElector({ ...options, timing: options.timing ?? defaultTiming });
  return candidate.run(signal);
}

interface LeaseObservation {
  readonly lease: Stored<Lease>;
  /** When this state was first observed. */
  readonly at: number;
}

/** The server ends a watch after so long; it is opened again. */
const watchSeconds = 300;

class LeaderElector {
  readonly #options: ElectionOptions & { readonly timing: ElectionTiming };
  #observation: LeaseObservation | undefined;
  #lastWarning = "";

  constructor(options: ElectionOptions & { timing: ElectionTiming }) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<Leadership> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const leadership = await this.#tryAcquire(signal);
        if (leadership !== undefined) return leadership;
        this.#lastWarning = "";
      } catch (error) {
        signal.throwIfAborted();
        this.#logWarning(error);
        await this.#pause(signal);
      }
    }
  }

  /** Acquires the Lease if it is free; otherwise waits until it changes or expires. */
  async #tryAcquire(signal: AbortSignal): Promise<Leadership | undefined> {
    const { timing } = this.#options;
    const lease = await findLease(this.#options, { signal, deadlineMs: timing.renewDeadlineMs });
    if (lease !== undefined) this.#observe(lease);
    if (this.#remainingMs() <= 0) return this.#acquire(lease);
    // The holder of a deleted Lease does not know yet that it was deleted.
    if (lease === undefined) await this.#pause(signal);
    else await this.#watchLease(lease, signal);
    return undefined;
  }

  /** Not aborted with the election: the Lease could be acquired without a process that knows it. */
  async #acquire(before: Stored<Lease> | undefined): Promise<Leadership | undefined> {
    const { client, name, clock, timing } = this.#options;
    const acquired = acquiredLease(this.#options, before ?? this.#observation?.lease);
    const call = { deadlineMs: timing.renewDeadlineMs };
    const at = takeMoment(clock);
    try {
      const lease = await (before === undefined
        ? client.create(resources.leases, { metadata: { name }, ...acquired }, call)
        : client.replace(resources.leases, { ...before, ...acquired }, call));
      return startLeaseRenewal(this.#options, lease, at);
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return undefined;
      throw error;
    }
  }

  /** Watches the Lease until it is released or deleted, or expires. */
  async #watchLease(lease: Stored<Lease>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const expiry = new AbortController();
    const schedule = () => clock.schedule(this.#remainingMs(), () => expiry.abort());
    const end = AbortSignal.any([signal, expiry.signal]);
    let cancel = schedule();
    try {
      for await (const { type, object } of this.#leaseEvents(lease, end)) {
        if (type === "BOOKMARK") continue;
        if (type === "DELETED") return;
        this.#observe(object);
        cancel();
        if (this.#remainingMs() <= 0) return;
        cancel = schedule();
      }
      await this.#pause(end);
    } catch (error) {
      if (!expiry.signal.aborted) throw error;
    } finally {
      cancel();
    }
  }

  #leaseEvents({ metadata: { resourceVersion } }: Stored<Lease>, signal: AbortSignal) {
    const { client, name } = this.#options;
    const fieldSelector = `metadata.name=${name}`;
    const timeoutSeconds = watchSeconds;
    const selection = { fieldSelector, resourceVersion };
    return client.watch(resources.leases, { ...selection, timeoutSeconds, signal });
  }

  #observe(lease: Stored<Lease>): void {
    const before = this.#observation?.lease;
    if (before !== undefined && renewalKey(lease) === renewalKey(before)) return;
    this.#observation = { lease, at: this.#options.clock.now() };
  }

  /** Time until the Lease as last observed expires; 0 when this candidate may acquire it. */
  #remainingMs(): number {
    if (this.#observation === undefined) return 0;
    const { lease, at } = this.#observation;
    const holder = leaseHolder(lease);
    if (holder === undefined || holder === this.#options.identity) return 0;
    return at + (lease.spec?.leaseDurationSeconds ?? 0) * 1_000 - this.#options.clock.now();
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { clock, timing } = this.#options;
    await sleepUnlessAborted(clock, timing.retryMs * (1 + Math.random() / 5), signal);
  }

  #logWarning(error: unknown): void {
    const warning = errorMessageWithCauses(error);
    if (warning !== this.#lastWarning) {
      this.#options.log("warn", "Cannot acquire the lease", { error: warning });
    }
    this.#lastWarning = warning;
  }
}

/** Changes with every renewal, and not with other writes to the same object. */
function renewalKey({ spec }: Lease): string {
  return JSON.stringify([spec?.holderIdentity, spec?.renewTime, spec?.leaseTransitions]);
}
