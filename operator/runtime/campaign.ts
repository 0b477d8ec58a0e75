import { isAlreadyExists, isConflict } from "../../src/kubernetes/kubernetes-error.ts";
import { type Lease, resources, type Stored } from "../../src/kubernetes/resources.ts";
import { momentOf, pause } from "./clock.ts";
import { messageOf } from "./json-log.ts";
import { keepLease, type Leadership } from "./leadership.ts";
import {
  claimedLease,
  defaultTiming,
  type ElectionOptions,
  type ElectionTiming,
  findLease,
  holderOf,
} from "./lease-record.ts";

/**
 * Waits until this candidate holds the Lease. Others' clocks do not count: a Lease has run out when this candidate saw it
 * unchanged for as long as it says. Goes on while the API server is away; throws only what the signal was aborted with.
 */
export async function campaign(options: ElectionOptions, signal: AbortSignal): Promise<Leadership> {
  const candidate = new Candidate({ ...options, timing: options.timing ?? defaultTiming });
  return candidate.run(signal);
}

interface Sighting {
  readonly lease: Stored<Lease>;
  /** When it was first seen so. */
  readonly at: number;
}

/** The server ends a watch then; it is opened again. */
const watchSeconds = 300;

class Candidate {
  readonly #options: ElectionOptions & { readonly timing: ElectionTiming };
  #sighting: Sighting | undefined;
  #complaint = "";

  constructor(options: ElectionOptions & { timing: ElectionTiming }) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<Leadership> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const leadership = await this.#tryToAcquire(signal);
        if (leadership !== undefined) return leadership;
        this.#complaint = "";
      } catch (error) {
        signal.throwIfAborted();
        this.#complain(error);
        await this.#pause(signal);
      }
    }
  }

  /** One look at the Lease, and the wait for its end where another candidate holds it. */
  async #tryToAcquire(signal: AbortSignal): Promise<Leadership | undefined> {
    const { timing } = this.#options;
    const lease = await findLease(this.#options, { signal, deadlineMs: timing.renewDeadlineMs });
    if (lease !== undefined) this.#note(lease);
    if (this.#remainingMs() <= 0) return this.#claim(lease);
    // Who held a lease that was deleted does not know yet.
    if (lease === undefined) await this.#pause(signal);
    else await this.#follow(lease, signal);
    return undefined;
  }

  /** A claim under way is not given up when the campaign is stopped: the Lease would be held by nobody. */
  async #claim(before: Stored<Lease> | undefined): Promise<Leadership | undefined> {
    const { client, name, clock, timing } = this.#options;
    const claim = claimedLease(this.#options, before ?? this.#sighting?.lease);
    const call = { deadlineMs: timing.renewDeadlineMs };
    const at = momentOf(clock);
    try {
      const lease = await (before === undefined
        ? client.create(resources.leases, { metadata: { name }, ...claim }, call)
        : client.replace(resources.leases, { ...before, ...claim }, call));
      return keepLease(this.#options, lease, at);
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return undefined;
      throw error;
    }
  }

  /** Watches the Lease until it is free, gone, or has run out. */
  async #follow(lease: Stored<Lease>, signal: AbortSignal): Promise<void> {
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
        this.#note(object);
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

  #note(lease: Stored<Lease>): void {
    if (this.#sighting === undefined || claimOf(lease) !== claimOf(this.#sighting.lease)) {
      this.#sighting = { lease, at: this.#options.clock.now() };
    }
  }

  /** How long the Lease as it was seen last is still another's. */
  #remainingMs(): number {
    if (this.#sighting === undefined) return 0;
    const { lease, at } = this.#sighting;
    const holder = holderOf(lease);
    if (holder === undefined || holder === this.#options.identity) return 0;
    return at + (lease.spec?.leaseDurationSeconds ?? 0) * 1_000 - this.#options.clock.now();
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { clock, timing } = this.#options;
    await pause(clock, timing.retryMs * (1 + Math.random() / 5), signal);
  }

  #complain(error: unknown): void {
    const complaint = messageOf(error);
    if (complaint !== this.#complaint) this.#options.log("warn", "Cannot campaign for the lease", { error: complaint });
    this.#complaint = complaint;
  }
}

/** Changes with every renewal, and not with what others write to the same object. */
function claimOf({ spec }: Lease): string {
  return JSON.stringify([spec?.holderIdentity, spec?.renewTime, spec?.leaseTransitions]);
}
