import { setBounded } from "../../limits/bounded-map.ts";
import { createHash } from "node:crypto";
import { z } from "zod";
import { observedWorkerPod, type ObservedWorkerPod } from "./observed-worker-pod.ts";
import type { PodLogCollector } from "./pod-log-collector.ts";
import { UnknownTokenLimit } from "./unknown-token-limit.ts";
import { ServiceError } from "../../contract/errors.ts";
import { workerTokenAudience } from "../../contract/worker-protocol/messages.ts";
import type { ObjectReader } from "../../controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { ignoreNotFound, KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import { objectKey } from "../../kubernetes/object-key.ts";
import { resources, type TokenReview } from "../../kubernetes/resources.ts";
import type { ClusterJob } from "../../records/jobs/cluster-records.ts";
import type { Records } from "../../records/open-records.ts";
import { type ObservedPod, observedResources } from "../../resources/observed-resources.ts";
import { namespaceProject, type ServedNamespaces } from "../../resources/served-namespaces.ts";
import {
  invalidTokenError,
  type WorkerAuthentication,
  wrongWorkerError,
} from "../../auth/authenticate.ts";

interface PodAuthenticationOptions {
  readonly client: KubernetesClient;
  readonly namespaces: ServedNamespaces;
  readonly records: Records;
  readonly pods: Pick<ObjectReader<ObservedPod>, "get">;
  readonly logCollector: PodLogCollector;
  /** Records the output of the job's ended pods, before another pod continues its work. */
  readonly recordEndedPods: (job: ClusterJob) => Promise<void>;
  /** Service account of the workers of each namespace. */
  readonly serviceAccount: string;
  readonly now: () => Date;
}

/** The pod to which a token is bound. */
interface ReviewedToken {
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
  /** Milliseconds since 1970. */
  readonly reviewedAt: number;
  /** Expiry of the token; until then an old review is used while the API server is unavailable. */
  readonly expiresAt: number;
}

const reviewValidityMs = 60_000;
/** Shorter: the API server can refuse a token while it has not observed its pod. */
const refusalValidityMs = 5_000;
const tokenExpiryMarginMs = 5_000;
const podNameKey = "authentication.kubernetes.io/pod-name";
const podUidKey = "authentication.kubernetes.io/pod-uid";

/**
 * Authenticates workers in pods by service account tokens with the worker audience, bound to the
 * pod.
 */
export class PodAuthentication implements WorkerAuthentication {
  readonly #options: PodAuthenticationOptions;
  readonly #reviewedTokens = new Map<string, ReviewedToken>();
  /** When the cluster refused a token, which is then refused without asking again. */
  readonly #refusedTokens = new Map<string, number>();
  /** By pod and job: labels of pods can be changed. */
  readonly #attempts = new Map<string, number>();
  /** Of tokens that name no pod of the cache: a new pod's are few. */
  readonly #strangers = new UnknownTokenLimit();

  constructor(options: PodAuthenticationOptions) {
    this.#options = options;
  }

  authenticate(token: string, jobId: string) {
    return asUnavailable(this.#authenticate(token, jobId));
  }

  async #authenticate(token: string, jobId: string) {
    const reviewed = await this.#reviewCached(token);
    const pod = await this.#getPod(reviewed);
    if (pod.jobId !== jobId) throw wrongWorkerError(jobId);
    const attempt = this.#attempts.get(attemptKey(pod)) ?? (await this.#beginAttempt(pod));
    const { logCollector } = this.#options;
    const catchUp = async () => void (await asUnavailable(logCollector.recordOutput(pod, attempt)));
    return { attempt, catchUp };
  }

  async #beginAttempt(pod: ObservedWorkerPod): Promise<number> {
    const { jobId, uid, namespace, part } = pod;
    const { records, recordEndedPods } = this.#options;
    const record = await records.cluster.findJob(jobId);
    if (record === undefined || record.resource.uid === null) {
      throw notYetKnownError(`Job "${jobId}" is not known yet`);
    }
    if (record.resource.namespace !== namespace) throw wrongWorkerError(jobId);
    const isOwn = await isCreatedFor(this.#options.client, pod, record.resource.uid);
    if (!isOwn) throw wrongWorkerError(jobId);
    await recordEndedPods(record);
    const attempt = await records.attempts.beginPodAttempt(jobId, { podUid: uid, part });
    if (attempt === undefined) {
      throw new ServiceError("job_finished", `Job "${jobId}" needs no worker any more`);
    }
    setBounded(this.#attempts, attemptKey(pod), attempt, maxCachedEntries);
    return attempt;
  }

  async #getPod({ namespace, podName, podUid }: ReviewedToken): Promise<ObservedWorkerPod> {
    const { pods, client } = this.#options;
    const cached = pods.get(objectKey({ namespace, name: podName }));
    if (cached?.metadata.uid === podUid) return observedWorkerPod(cached);
    const own = client.inNamespace(namespace);
    const live = await ignoreNotFound(own.get(resources.pods, podName));
    if (live?.metadata.uid !== podUid) throw invalidTokenError(`Pod "${podName}" was deleted`);
    throw notYetKnownError(`Pod "${podName}" is not known yet`);
  }

  async #reviewCached(token: string): Promise<ReviewedToken> {
    const now = this.#options.now().getTime();
    const hash = createHash("sha256").update(token).digest("base64");
    const cached = this.#reviewedTokens.get(hash);
    if (cached !== undefined && isReviewValid(cached, now)) return cached;
    const refusedAt = this.#refusedTokens.get(hash) ?? -Infinity;
    if (Math.abs(now - refusedAt) < refusalValidityMs) throw refusedTokenError();
    try {
      const reviewed = await this.#requestReview(token, now);
      setBounded(this.#reviewedTokens, hash, reviewed, maxCachedEntries);
      return reviewed;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "unauthorized") {
        setBounded(this.#refusedTokens, hash, now, maxCachedEntries);
      }
      const isUnanswered = error instanceof KubernetesError;
      if (isUnanswered && cached !== undefined && now < cached.expiresAt) return cached;
      throw error;
    }
  }

  async #requestReview(token: string, now: number): Promise<ReviewedToken> {
    const { client, namespaces, serviceAccount, pods } = this.#options;
    const claims = readPodTokenClaims(token);
    if (claims === undefined || claims.expiresAt <= now) throw refusedTokenError();
    const { namespace, podName, podUid, expiresAt } = claims;
    if (namespaceProject(namespaces, namespace) === undefined) throw refusedTokenError();
    const cached = pods.get(objectKey({ namespace, name: podName }));
    if (cached?.metadata.uid !== podUid) this.#strangers.count(now);
    const spec = { token, audiences: [workerTokenAudience] };
    const review = await client.review(resources.tokenReviews, { spec });
    const username = `system:serviceaccount:${namespace}:${serviceAccount}`;
    const pod = readBoundPod(review, username);
    return { ...pod, namespace, expiresAt, reviewedAt: now };
  }
}

/** A clock that was set back makes reviews younger than they are. */
function isReviewValid({ reviewedAt, expiresAt }: ReviewedToken, now: number): boolean {
  return Math.abs(now - reviewedAt) < reviewValidityMs && now < expiresAt - tokenExpiryMarginMs;
}

function attemptKey({ uid, jobId }: ObservedWorkerPod): string {
  return `${uid} ${jobId}`;
}

function refusedTokenError(): ServiceError {
  return invalidTokenError("The token is not one that the cluster issued for a worker");
}

/** Checks the result of a review, and returns the pod to which the token is bound. */
function readBoundPod(
  { status }: TokenReview,
  username: string,
): Pick<ReviewedToken, "podName" | "podUid"> {
  const { authenticated = false, audiences = [], user } = status ?? {};
  if (!authenticated || !audiences.includes(workerTokenAudience)) {
    throw refusedTokenError();
  }
  if (user?.username !== username) {
    throw invalidTokenError(`The token is that of "${user?.username}", not of a worker`);
  }
  const [podName] = user.extra?.[podNameKey] ?? [];
  const [podUid] = user.extra?.[podUidKey] ?? [];
  if (podName === undefined || podUid === undefined) {
    throw invalidTokenError("The token is not bound to a pod");
  }
  return { podName, podUid };
}

function notYetKnownError(message: string): ServiceError {
  return new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
}

/** @throws ServiceError unavailable where the API server refuses, or does not answer */
async function asUnavailable<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (cause) {
    if (!(cause instanceof KubernetesError)) throw cause;
    const message = "The cluster cannot be asked about the worker";
    throw new ServiceError("unavailable", message, { cause, headers: { "retry-after": "1" } });
  }
}

const podTokenClaims = z.object({
  exp: z.number(),
  "kubernetes.io": z.object({
    namespace: z.string(),
    pod: z.object({ name: z.string(), uid: z.string() }),
  }),
});

interface PodTokenClaims {
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What a token says of itself, unverified; undefined where it is not that of a pod. */
function readPodTokenClaims(token: string): PodTokenClaims | undefined {
  const { success, data } = podTokenClaims.safeParse(decodeTokenPayload(token));
  if (!success) return undefined;
  const { namespace, pod } = data["kubernetes.io"];
  const { name: podName, uid: podUid } = pod;
  return { namespace, podName, podUid, expiresAt: data.exp * 1000 };
}

/** Whether the Job that created the pod is there and belongs to the resource with the uid. */
export async function isCreatedFor(
  client: KubernetesClient,
  { workerJob, namespace }: ObservedWorkerPod,
  resourceUid: string,
): Promise<boolean> {
  if (workerJob === undefined) return false;
  const own = client.inNamespace(namespace);
  const live = await ignoreNotFound(own.get(observedResources.jobs, workerJob.name));
  const owner = live?.metadata.ownerReferences?.find(({ controller }) => controller);
  return live?.metadata.uid === workerJob.uid && owner?.uid === resourceUid;
}

/** The claims of a token, unverified; undefined where it has none. */
export function decodeTokenPayload(token: string): unknown {
  const [, payload = ""] = token.split(".");
  try {
    return JSON.parse(Buffer.from(payload, "base64url").toString());
  } catch {
    return undefined;
  }
}

/** Entries of one cache; the oldest above it are forgotten. */
export const maxCachedEntries = 10_000;
