import { createHash } from "node:crypto";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import { workerTokenAudience } from "../contract/worker.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { isNotFound, KubernetesError } from "../kubernetes/kubernetes-error.ts";
import type { Reflector } from "../kubernetes/reflector.ts";
import type { ObservedPod } from "../kubernetes/observed-resources.ts";
import { resources } from "../kubernetes/resources.ts";
import type { Records } from "../records/open-records.ts";
import { invalidToken } from "../server/authenticate.ts";
import { notTheWorker, type WorkerAuthentication } from "../server/worker-authentication.ts";
import type { PodCaptures } from "./pod-captures.ts";
import { readPod, type WorkerPod } from "./worker-pod.ts";

interface PodAuthenticationOptions {
  readonly client: KubernetesClient;
  readonly records: Records;
  readonly pods: Pick<Reflector<ObservedPod>, "get">;
  readonly captures: PodCaptures;
  /** Of the job's pods that have ended, everything is recorded before another one takes over. */
  readonly settle: (jobId: string) => Promise<void>;
  /** Service account of all workers. */
  readonly serviceAccount: string;
  readonly now: () => Date;
}

/** The pod that a token was made for. */
interface Bearer {
  readonly podName: string;
  readonly podUid: string;
  /** Until then the review is good, milliseconds since 1970. */
  readonly reviewedUntil: number;
  /** The token's own end: until then an old review counts while the API server cannot be asked. */
  readonly expiresAt: number;
}

const reviewMs = 60_000;
const marginMs = 5_000;
const maxRemembered = 10_000;
const podNameKey = "authentication.kubernetes.io/pod-name";
const podUidKey = "authentication.kubernetes.io/pod-uid";

/** Workers in pods, each with a token of its service account that is bound to the pod and meant for this service. */
export function podAuthentication(options: PodAuthenticationOptions): WorkerAuthentication {
  return new PodAuthentication(options);
}

class PodAuthentication implements WorkerAuthentication {
  readonly #options: PodAuthenticationOptions;
  readonly #bearers = new Map<string, Bearer>();
  readonly #attempts = new Map<string, number>();

  constructor(options: PodAuthenticationOptions) {
    this.#options = options;
  }

  async authenticate(token: string, jobId: string) {
    const { captures } = this.#options;
    const bearer = await this.#bearerOf(token);
    const pod = await this.#podOf(bearer);
    if (pod.jobId !== jobId) throw notTheWorker(jobId);
    const attempt = this.#attempts.get(pod.uid) ?? (await this.#begin(pod));
    return {
      attempt,
      catchUp: async () => {
        await captures.read(pod, attempt).catch((error: unknown) => {
          throw error instanceof KubernetesError ? unreachable(error) : error;
        });
      },
    };
  }

  async #begin({ jobId, uid, part }: WorkerPod): Promise<number> {
    const { records, settle } = this.#options;
    if ((await records.held.findJob(jobId)) === undefined) throw notYet(`Job "${jobId}" is not known yet`);
    await settle(jobId);
    const attempt = await records.attempts.beginPod(jobId, { podUid: uid, part });
    if (attempt === undefined) throw new ServiceError("job_finished", `Job "${jobId}" needs no worker any more`);
    remember(this.#attempts, uid, attempt);
    return attempt;
  }

  async #podOf({ podName, podUid }: Bearer): Promise<WorkerPod> {
    const { pods, client } = this.#options;
    const cached = pods.get(podName);
    if (cached?.metadata.uid === podUid) return readPod(cached);
    const live = await client.get(resources.pods, podName).catch((error: unknown) => {
      if (isNotFound(error)) throw invalidToken(`Pod "${podName}" is gone`);
      throw unreachable(error);
    });
    if (live.metadata.uid !== podUid) throw invalidToken(`Pod "${podName}" is another one now`);
    throw notYet(`Pod "${podName}" is not known yet`);
  }

  async #bearerOf(token: string): Promise<Bearer> {
    const now = this.#options.now().getTime();
    const hash = createHash("sha256").update(token).digest("base64");
    const known = this.#bearers.get(hash);
    if (known !== undefined && now < known.reviewedUntil) return known;
    try {
      const bearer = await this.#review(token, now);
      remember(this.#bearers, hash, bearer);
      return bearer;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      if (known !== undefined && now < known.expiresAt) return known;
      throw unreachable(error);
    }
  }

  async #review(token: string, now: number): Promise<Bearer> {
    const { client, serviceAccount } = this.#options;
    const spec = { token, audiences: [workerTokenAudience] };
    const { status } = await client.review(resources.tokenReviews, { spec });
    const { authenticated = false, audiences = [], user } = status ?? {};
    if (!authenticated || !audiences.includes(workerTokenAudience)) {
      throw invalidToken("The token is not one that the cluster made for a worker");
    }
    if (user?.username !== `system:serviceaccount:${client.namespace}:${serviceAccount}`) {
      throw invalidToken(`The token is that of "${user?.username}", not of a worker`);
    }
    const [podName] = user.extra?.[podNameKey] ?? [];
    const [podUid] = user.extra?.[podUidKey] ?? [];
    if (podName === undefined || podUid === undefined) throw invalidToken("The token is not bound to a pod");
    const expiresAt = expiryOf(token);
    return { podName, podUid, expiresAt, reviewedUntil: Math.min(now + reviewMs, expiresAt - marginMs) };
  }
}

/** The oldest entries go where there are too many. */
function remember<T>(entries: Map<string, T>, key: string, value: T): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > maxRemembered && oldest !== undefined) entries.delete(oldest);
}

/** Of a token that the cluster has accepted, milliseconds since 1970. */
function expiryOf(token: string): number {
  const [, payload = ""] = token.split(".");
  return claims.parse(JSON.parse(Buffer.from(payload, "base64url").toString())).exp * 1000;
}

const claims = z.object({ exp: z.number() });

function notYet(message: string): ServiceError {
  return new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
}

function unreachable(cause: unknown): ServiceError {
  return new ServiceError("unavailable", "The cluster cannot be asked about the worker", {
    cause,
    headers: { "retry-after": "1" },
  });
}
