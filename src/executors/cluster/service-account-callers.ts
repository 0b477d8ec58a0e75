import { setBounded } from "../../limits/bounded-map.ts";
import { createHash } from "node:crypto";
import { z } from "zod";
import { decodeTokenPayload, maxCachedEntries } from "./pod-authentication.ts";
import { UnknownTokenLimit } from "./unknown-token-limit.ts";
import { type Caller, invalidTokenError } from "../../auth/authenticate.ts";
import { apiGroup } from "../../contract/custom-resources/api-group.ts";
import { ServiceError } from "../../contract/errors.ts";
import {
  type Action,
  callerTokenAudience,
  permissionTable,
  serviceAccountVerbs,
} from "../../contract/people/permissions.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import { resources } from "../../kubernetes/resources.ts";
import { namespaceProject, type ServedNamespaces } from "../../resources/served-namespaces.ts";

interface CallerOptions {
  readonly client: KubernetesClient;
  readonly namespaces: ServedNamespaces;
  readonly now: () => Date;
}

interface CachedAnswer {
  readonly isYes: Promise<boolean>;
  readonly askedAt: number;
}

type Claims = NonNullable<ReturnType<typeof readServiceAccountClaims>>;

/** An answer of the API server counts for so long, also after a permission was taken away. */
const answerMs = 10_000;
const resourcesToAsk = ["compressionjobs", "batches"];

/**
 * Authenticates programs of the cluster by tokens of their ServiceAccounts, each in the project of
 * the account's namespace, and asks the API server whether they may do what they ask for.
 */
export class ServiceAccountCallers {
  readonly #options: CallerOptions;
  readonly #answers = new Map<string, CachedAnswer>();
  readonly #strangers = new UnknownTokenLimit();

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  /** @throws ServiceError unauthorized, missing_scope; unavailable without the API server */
  async authenticate(token: string, action: Action): Promise<Caller> {
    const { namespaces, now } = this.#options;
    const claims = readServiceAccountClaims(token);
    if (claims === undefined || claims.expiresAt <= now().getTime()) throw unknownTokenError();
    const project = namespaceProject(namespaces, claims.namespace);
    if (project === undefined) throw unknownTokenError();
    const hash = createHash("sha256").update(token).digest("base64");
    const isKnown = (await this.#answers.get(hash)?.isYes.catch(() => false)) ?? false;
    const isGenuine = await this.#ask(hash, () => this.#review(token, claims, isKnown));
    if (!isGenuine) throw unknownTokenError();
    await this.#requireAllowed(claims, action);
    return serviceAccountCaller(claims, project, action);
  }

  async #requireAllowed(claims: Claims, action: Action): Promise<void> {
    if (permissionTable[action].scope === null) return;
    const verb = serviceAccountVerbs[action];
    if (verb === undefined) throw forbiddenError(`"${action}" needs an access token`);
    const { namespace, username } = claims;
    for (const resource of resourcesToAsk) {
      const key = JSON.stringify([username, claims.uid, namespace, resource, verb]);
      const isAllowed = await this.#ask(key, () => this.#isAllowed(claims, { resource, verb }));
      if (isAllowed) continue;
      const what = `${verb} ${resource}.${apiGroup} in namespace "${namespace}"`;
      throw forbiddenError(`"${username}" may not ${what}`);
    }
  }

  async #ask(key: string, ask: () => Promise<boolean>): Promise<boolean> {
    const now = this.#options.now().getTime();
    const cached = this.#answers.get(key);
    // A clock that was set back makes answers younger than they are.
    const isFresh = cached !== undefined && Math.abs(now - cached.askedAt) < answerMs;
    const answer = isFresh ? cached : { isYes: ask(), askedAt: now };
    if (!isFresh) setBounded(this.#answers, key, answer, maxCachedEntries);
    try {
      return await answer.isYes;
    } catch (error) {
      if (this.#answers.get(key) === answer) this.#answers.delete(key);
      throw error instanceof KubernetesError ? unansweredError(error) : error;
    }
  }

  async #review(token: string, claims: Claims, isKnown: boolean): Promise<boolean> {
    if (!isKnown) this.#strangers.count(this.#options.now().getTime());
    const spec = { token, audiences: [callerTokenAudience] };
    const { status } = await this.#options.client.review(resources.tokenReviews, { spec });
    const { authenticated = false, audiences = [], user } = status ?? {};
    return (
      authenticated &&
      audiences.includes(callerTokenAudience) &&
      user?.username === claims.username &&
      user.uid === claims.uid
    );
  }

  async #isAllowed(
    { namespace, username, uid }: Claims,
    asked: { readonly resource: string; readonly verb: string },
  ): Promise<boolean> {
    const accounts = "system:serviceaccounts";
    const groups = [accounts, `${accounts}:${namespace}`, "system:authenticated"];
    const resourceAttributes = { namespace, group: apiGroup, ...asked };
    const spec = { user: username, uid, groups, resourceAttributes };
    const review = await this.#options.client.review(resources.subjectAccessReviews, { spec });
    return review.status?.allowed ?? false;
  }
}

function serviceAccountCaller(claims: Claims, project: string, action: Action): Caller {
  const { username, uid, expiresAt } = claims;
  const { scope } = permissionTable[action];
  return {
    project,
    tokenId: null,
    personId: null,
    scopes: scope === null ? [] : [scope],
    expiresAt: new Date(expiresAt).toISOString(),
    policy: null,
    workflow: null,
    // An account that was deleted and made again, with the same name, is another one.
    id: uid,
    name: username,
    role: null,
    memberships: [],
    session: null,
    // An account's tokens are renewed every hour.
    secret: uid,
  };
}

function unknownTokenError(): ServiceError {
  return invalidTokenError("The token is neither an access token nor one that the cluster issued");
}

function forbiddenError(message: string): ServiceError {
  const headers = { "www-authenticate": 'Bearer error="insufficient_scope"' };
  return new ServiceError("missing_scope", message, { headers });
}

function unansweredError(cause: KubernetesError): ServiceError {
  const message = "The cluster cannot be asked about the token";
  return new ServiceError("unavailable", message, { cause, headers: { "retry-after": "1" } });
}

const serviceAccountClaims = z.object({
  aud: z.array(z.string()).refine((audiences) => audiences.includes(callerTokenAudience)),
  exp: z.number(),
  "kubernetes.io": z.object({
    namespace: z.string(),
    serviceaccount: z.object({ name: z.string(), uid: z.string() }),
  }),
});

interface ServiceAccountClaims {
  readonly namespace: string;
  /** Name of the user that the account is. */
  readonly username: string;
  readonly uid: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What a token says of itself, unverified; undefined where it is not for callers. */
function readServiceAccountClaims(token: string): ServiceAccountClaims | undefined {
  const { success, data } = serviceAccountClaims.safeParse(decodeTokenPayload(token));
  if (!success) return undefined;
  const { namespace, serviceaccount } = data["kubernetes.io"];
  const username = `system:serviceaccount:${namespace}:${serviceaccount.name}`;
  return { namespace, username, uid: serviceaccount.uid, expiresAt: data.exp * 1000 };
}
