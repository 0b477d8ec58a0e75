import { type Clock, elapsedMs, type Moment, sleepUnlessAborted, takeMoment } from "./clock.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import {
  ignoreNotFound,
  isAlreadyExists,
  isConflict,
  isNotFound,
} from "../kubernetes/kubernetes-error.ts";
import { type Lease, resources, type Stored } from "../kubernetes/resources.ts";
import type { CallOptions } from "../kubernetes/transport.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";

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

/** Renews the Lease until it is lost or released. */
class LeaseRenewer implements Leadership {
  readonly #options: ElectionOptions & { readonly timing: ElectionTiming };
  readonly #lost = new AbortController();
  readonly #releasing = new AbortController();
  readonly #renewing: Promise<void>;
  #lease: Stored<Lease>;
  #renewedAt: Moment;
  #cancelDeadline: () => void = () => {};

  /** The Lease was acquired by a request sent at `acquiredAt`. */
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
    await this.#renewing;
    this.#cancelDeadline();
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
      return new LeaseRenewer(this.#options, lease, at);
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

interface ElectionOptions {
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

const defaultTiming: ElectionTiming = {
  leaseMs: 15_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
};

async function findLease(
  { client, name }: ElectionOptions,
  options: CallOptions,
): Promise<Stored<Lease> | undefined> {
  return ignoreNotFound(client.get(resources.leases, name, options));
}

/** The Lease with this candidate as its holder, and one more transition than `before`. */
function acquiredLease(
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

function leaseHolder(lease: Lease): string | undefined {
  return lease.spec?.holderIdentity || undefined;
}

/**
 * A client whose writes require the leadership. Without it they throw `NotLeaderError`, and calls
 * in progress are aborted when it is lost.
 */
export function fenceWrites(client: KubernetesClient, leadership: Leadership): KubernetesClient {
  const fenced = <T extends { readonly signal?: AbortSignal }>(options?: T) => {
    leadership.assertLeader();
    const { lost } = leadership;
    return {
      ...options,
      signal: options?.signal === undefined ? lost : AbortSignal.any([lost, options.signal]),
    };
  };
  return {
    namespace: client.namespace,
    inNamespace: (namespace) => fenceWrites(client.inNamespace(namespace), leadership),
    create: async (type, object, options) => client.create(type, object, fenced(options)),
    replace: async (type, object, options) => client.replace(type, object, fenced(options)),
    patch: async (type, name, patch, options) => client.patch(type, name, patch, fenced(options)),
    delete: async (type, name, options) =>
      client.delete(type, name, { ...options, ...fenced(options) }),
    get: (type, name, options) => client.get(type, name, options),
    list: (type, options) => client.list(type, options),
    review: (type, object, options) => client.review(type, object, options),
    watch: (type, options) => client.watch(type, options),
    openLog: (pod, options) => client.openLog(pod, options),
    close: () => client.close(),
  };
}

/**
 * Formats milliseconds since 1970 as a Kubernetes MicroTime. The API server accepts exactly six
 * fractional digits.
 */
export function formatMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
