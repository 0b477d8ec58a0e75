import { createHash } from "node:crypto";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { workerTokenAudience } from "../../contract/worker.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { isNotFound, KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import type { Reflector } from "../../kubernetes/reflector.ts";
import type { ObservedPod } from "../../resources/observed-resources.ts";
import { resources } from "../../kubernetes/resources.ts";
import type { Records } from "../../records/open-records.ts";
import { invalidTokenError } from "../../auth/authenticate.ts";
import { wrongWorkerError, type WorkerAuthentication } from "../worker-authentication.ts";
import type { PodLogCollector } from "./pod-log-collector.ts";
import { observedWorkerPod, type ObservedWorkerPod } from "./observed-worker-pod.ts";

interface PodAuthenticationOptions {
  readonly client: KubernetesClient;
  readonly records: Records;
  readonly pods: Pick<Reflector<ObservedPod>, "get">;
  readonly logCollector: PodLogCollector;
  /** Of the job's pods that have ended, everything is recorded before another one takes over. */
  readonly recordEndedPods: (jobId: string) => Promise<void>;
  /** Service account of all workers. */
  readonly serviceAccount: string;
  readonly now: () => Date;
}

/** The pod that a token was made for. */
interface ReviewedToken {
  readonly podName: string;
  readonly podUid: string;
  /** Until then the review is good, milliseconds since 1970. */
  readonly reviewValidUntil: number;
  /** The token's own end: until then an old review counts while the API server cannot be asked. */
  readonly expiresAt: number;
}

const reviewValidityMs = 60_000;
const tokenExpiryMarginMs = 5_000;
const maxCachedEntries = 10_000;
const podNameKey = "authentication.kubernetes.io/pod-name";
const podUidKey = "authentication.kubernetes.io/pod-uid";

/** Workers in pods, each with a token of its service account that is bound to the pod and meant for this service. */
export function createPodAuthentication(options: PodAuthenticationOptions): WorkerAuthentication {
  return new PodAuthentication(options);
}

class PodAuthentication implements WorkerAuthentication {
  readonly #options: PodAuthenticationOptions;
  readonly #reviewedTokens = new Map<string, ReviewedToken>();
  readonly #attempts = new Map<string, number>();

  constructor(options: PodAuthenticationOptions) {
    this.#options = options;
  }

  async authenticate(token: string, jobId: string) {
    const { logCollector } = this.#options;
    const reviewed = await this.#reviewCached(token);
    const pod = await this.#getPod(reviewed);
    if (pod.jobId !== jobId) throw wrongWorkerError(jobId);
    const attempt = this.#attempts.get(pod.uid) ?? (await this.#beginAttempt(pod));
    return {
      attempt,
      catchUp: async () => {
        await logCollector.recordOutput(pod, attempt).catch((error: unknown) => {
          throw error instanceof KubernetesError ? clusterUnreachableError(error) : error;
        });
      },
    };
  }

  async #beginAttempt({ jobId, uid, part }: ObservedWorkerPod): Promise<number> {
    const { records, recordEndedPods } = this.#options;
    if ((await records.cluster.findJob(jobId)) === undefined)
      throw notYetKnownError(`Job "${jobId}" is not known yet`);
    await recordEndedPods(jobId);
    const attempt = await records.attempts.beginPodAttempt(jobId, { podUid: uid, part });
    if (attempt === undefined)
      throw new ServiceError("job_finished", `Job "${jobId}" needs no worker any more`);
    setBounded(this.#attempts, uid, attempt);
    return attempt;
  }

  async #getPod({ podName, podUid }: ReviewedToken): Promise<ObservedWorkerPod> {
    const { pods, client } = this.#options;
    const cached = pods.get(podName);
    if (cached?.metadata.uid === podUid) return observedWorkerPod(cached);
    const live = await client.get(resources.pods, podName).catch((error: unknown) => {
      if (isNotFound(error)) throw invalidTokenError(`Pod "${podName}" is gone`);
      throw clusterUnreachableError(error);
    });
    if (live.metadata.uid !== podUid)
      throw invalidTokenError(`Pod "${podName}" is another one now`);
    throw notYetKnownError(`Pod "${podName}" is not known yet`);
  }

  async #reviewCached(token: string): Promise<ReviewedToken> {
    const now = this.#options.now().getTime();
    const hash = createHash("sha256").update(token).digest("base64");
    const cached = this.#reviewedTokens.get(hash);
    if (cached !== undefined && now < cached.reviewValidUntil) return cached;
    try {
      const reviewed = await this.#requestReview(token, now);
      setBounded(this.#reviewedTokens, hash, reviewed);
      return reviewed;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      if (cached !== undefined && now < cached.expiresAt) return cached;
      throw clusterUnreachableError(error);
    }
  }

  async #requestReview(token: string, now: number): Promise<ReviewedToken> {
    const { client, serviceAccount } = this.#options;
    const spec = { token, audiences: [workerTokenAudience] };
    const { status } = await client.review(resources.tokenReviews, { spec });
    const { authenticated = false, audiences = [], user } = status ?? {};
    if (!authenticated || !audiences.includes(workerTokenAudience)) {
      throw invalidTokenError("The token is not one that the cluster made for a worker");
    }
    if (user?.username !== `system:serviceaccount:${client.namespace}:${serviceAccount}`) {
      throw invalidTokenError(`The token is that of "${user?.username}", not of a worker`);
    }
    const [podName] = user.extra?.[podNameKey] ?? [];
    const [podUid] = user.extra?.[podUidKey] ?? [];
    if (podName === undefined || podUid === undefined)
      throw invalidTokenError("The token is not bound to a pod");
    const expiresAt = readTokenExpiry(token);
    return {
      podName,
      podUid,
      expiresAt,
      reviewValidUntil: Math.min(now + reviewValidityMs, expiresAt - tokenExpiryMarginMs),
    };
  }
}

/** The oldest entries go where there are too many. */
function setBounded<T>(entries: Map<string, T>, key: string, value: T): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > maxCachedEntries && oldest !== undefined) entries.delete(oldest);
}

/** Of a token that the cluster has accepted, milliseconds since 1970. */
function readTokenExpiry(token: string): number {
  const [, payload = ""] = token.split(".");
  return claims.parse(JSON.parse(Buffer.from(payload, "base64url").toString())).exp * 1000;
}

const claims = z.object({ exp: z.number() });

function notYetKnownError(message: string): ServiceError {
  return new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
}

function clusterUnreachableError(cause: unknown): ServiceError {
  return new ServiceError("unavailable", "The cluster cannot be asked about the worker", {
    cause,
    headers: { "retry-after": "1" },
  });
}
