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
 * Waits until this candidate holds the Lease. Others' clocks do not count: a Lease has run out when this candidate saw it
 * unchanged for as long as it says. Goes on while the API server is away; throws only what the signal was aborted with.
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
  /** When it was first seen so. */
  readonly at: number;
}

/** The server ends a watch then; it is opened again. */
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

  /** One look at the Lease, and the wait for its end where another candidate holds it. */
  async #tryAcquire(signal: AbortSignal): Promise<Leadership | undefined> {
    const { timing } = this.#options;
    const lease = await findLease(this.#options, { signal, deadlineMs: timing.renewDeadlineMs });
    if (lease !== undefined) this.#observe(lease);
    if (this.#remainingMs() <= 0) return this.#acquire(lease);
    // Who held a lease that was deleted does not know yet.
    if (lease === undefined) await this.#pause(signal);
    else await this.#watchLease(lease, signal);
    return undefined;
  }

  /** A claim under way is not given up when the campaign is stopped: the Lease would be held by nobody. */
  async #acquire(before: Stored<Lease> | undefined): Promise<Leadership | undefined> {
    const { client, name, clock, timing } = this.#options;
    const claim = acquiredLease(this.#options, before ?? this.#observation?.lease);
    const call = { deadlineMs: timing.renewDeadlineMs };
    const at = takeMoment(clock);
    try {
      const lease = await (before === undefined
        ? client.create(resources.leases, { metadata: { name }, ...claim }, call)
        : client.replace(resources.leases, { ...before, ...claim }, call));
      return startLeaseRenewal(this.#options, lease, at);
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return undefined;
      throw error;
    }
  }

  /** Watches the Lease until it is free, gone, or has run out. */
  async #watchLease(lease: Stored<Lease>, signal: AbortSignal): Promise<void> {
    const { client, name, clock } = this.#options;
    const runOut = new AbortController();
    let cancel = clock.schedule(this.#remainingMs(), () => runOut.abort());
    try {
      for await (const { type, object } of client.watch(resources.leases, {
        fieldSelector: `metadata.name=${name}`,
        resourceVersion: lease.metadata.resourceVersion,
        timeoutSeconds: watchSeconds,
        signal: AbortSignal.any([signal, runOut.signal]),
      })) {
        if (type === "BOOKMARK") continue;
        if (type === "DELETED") return;
        this.#observe(object);
        cancel();
        if (this.#remainingMs() <= 0) return;
        cancel = clock.schedule(this.#remainingMs(), () => runOut.abort());
      }
      await this.#pause(AbortSignal.any([signal, runOut.signal]));
    } catch (error) {
      if (!runOut.signal.aborted) throw error;
    } finally {
      cancel();
    }
  }

  #observe(lease: Stored<Lease>): void {
    if (
      this.#observation === undefined ||
      leaseClaimKey(lease) !== leaseClaimKey(this.#observation.lease)
    ) {
      this.#observation = { lease, at: this.#options.clock.now() };
    }
  }

  /** How long the Lease as it was seen last is still another's. */
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
    if (warning !== this.#lastWarning)
      this.#options.log("warn", "Cannot campaign for the lease", { error: warning });
    this.#lastWarning = warning;
  }
}

/** Changes with every renewal, and not with what others write to the same object. */
function leaseClaimKey({ spec }: Lease): string {
  return JSON.stringify([spec?.holderIdentity, spec?.renewTime, spec?.leaseTransitions]);
}
