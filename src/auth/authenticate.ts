import { ServiceError } from "../contract/errors.ts";
import type { Action } from "../contract/people/permissions.ts";
import { personId } from "../contract/id.ts";
import { may } from "../contract/people/may.ts";
import type { Owner, Principal } from "../contract/people/principal.ts";
import type { Session } from "../contract/people/session.ts";
import {
  findRole,
  type Membership,
  restrictScopes,
  type Role,
  roleTable,
} from "../contract/people/role.ts";
import type { Token } from "../contract/people/token.ts";
import type { Records } from "../records/open-records.ts";
import type { FoundToken } from "../records/people/token-records.ts";
import { hashSecret, isWellFormedToken } from "./access-token.ts";
import { type CookieSettings, readSessionSecret } from "./session-cookie.ts";

/** Who sent a request, by its access token, its session or its identity in the cluster. */
export interface Caller extends Principal {
  /** Of the token or the session; of a ServiceAccount its uid. */
  readonly id: string;
  /** Of the token, of the person who is signed in, or of the ServiceAccount. */
  readonly name: string;
  /** Of the person who is signed in, in the project; null if there is none. */
  readonly role: Role | null;
  /** Of the person who is signed in; none for an access token. */
  readonly memberships: readonly Membership[];
  /** Null for an access token. */
  readonly session: Session | null;
  /** The token or the session's secret itself, which the service does not store. */
  readonly secret: string;
}

/**
 * Authenticates a program by its identity in a cluster, for an action that it may do.
 * @throws ServiceError unauthorized, missing_scope, unavailable
 */
export type CallerAuthentication = (token: string, action: Action) => Promise<Caller>;

interface AuthenticationContext extends CookieSettings {
  readonly records: Pick<Records, "tokens" | "sessions">;
  /** Absent where the service takes only its own tokens. */
  readonly executor?: { readonly authenticateCaller?: CallerAuthentication | undefined };
  readonly now: () => Date;
}

/**
 * A request for an action has an access token, a session's cookie, or a token of a ServiceAccount.
 * @throws ServiceError unauthorized, cross_site_request; missing_scope for a ServiceAccount
 */
export async function authenticate(
  context: AuthenticationContext,
  request: Request,
  action: Action,
): Promise<Caller> {
  const secret = readSessionSecret(context, request);
  if (secret === undefined) return authenticateBearer(context, readBearerToken(request), action);
  if (!request.headers.has("authorization")) return authenticateSession(context, secret);
  throw new ServiceError("unauthorized", "The request has both an access token and a session");
}

async function authenticateBearer(
  context: AuthenticationContext,
  secret: string,
  action: Action,
): Promise<Caller> {
  const { authenticateCaller } = context.executor ?? {};
  return authenticateCaller === undefined || isWellFormedToken(secret)
    ? authenticateToken(context, secret)
    : authenticateCaller(secret, action);
}

async function authenticateToken(
  { records, now }: AuthenticationContext,
  secret: string,
): Promise<Caller> {
  const stored = isWellFormedToken(secret)
    ? await records.tokens.findByHash(hashSecret(secret))
    : undefined;
  if (stored === undefined) throw invalidTokenError("The access token is not known");
  requireUsableToken(stored, now());
  const principal = tokenPrincipal(stored);
  const { id, name } = stored.token;
  records.tokens.touch(id);
  return { ...principal, id, name, role: null, memberships: [], session: null, secret };
}

/** What a token allows that has not ended. A person's does what the person may do there now. */
function tokenPrincipal({ token, project, workflow, memberships }: FoundToken): Principal {
  const { id: tokenId, expiresAt, policy, person } = token;
  const role = memberships === null ? undefined : findRole(memberships, project);
  const allowed = role === undefined ? [] : roleTable[role].scopes;
  const scopes = memberships === null ? token.scopes : restrictScopes(token.scopes, allowed);
  return { project, tokenId, personId: person?.id ?? null, scopes, expiresAt, policy, workflow };
}

/** Whether a token or a person, by its id, could read a job or batch now. */
export async function canRead(
  { tokens, members }: Pick<Records, "tokens" | "members">,
  { id, owner, now }: { readonly id: string; readonly owner: Owner; readonly now: Date },
): Promise<boolean> {
  if (personId.safeParse(id).success) {
    return findRole(await members.listMemberships(id), owner.project) !== undefined;
  }
  const stored = await tokens.findById(id);
  if (stored === undefined || describeTokenEnd(stored.token, now) !== undefined) return false;
  return may(tokenPrincipal(stored), "readWork", owner);
}

async function authenticateSession(
  { records, now }: AuthenticationContext,
  secret: string,
): Promise<Caller> {
  const found = await records.sessions.findByHash(hashSecret(secret));
  if (found === undefined || Date.parse(found.session.expiresAt) <= now().getTime()) {
    throw new ServiceError("unauthorized", "The session has ended", { headers: bearerChallenge });
  }
  const { session, person, memberships } = found;
  records.sessions.touch(session.id);
  const { id, project, personId, expiresAt } = session;
  const role = findRole(memberships, project) ?? null;
  const scopes = role === null ? [] : roleTable[role].scopes;
  const none = { tokenId: null, policy: null, workflow: null };
  const principal = { ...none, project, personId, scopes, expiresAt };
  return { ...principal, id, name: person.name, role, memberships, session, secret };
}

const bearerChallenge = { "www-authenticate": "Bearer" };

/**
 * The secret in the Authorization header.
 * @throws ServiceError unauthorized
 */
export function readBearerToken(request: Request): string {
  const [scheme = "", secret] = (request.headers.get("authorization") ?? "").split(" ");
  if (scheme.toLowerCase() === "bearer" && secret) return secret;
  const message = "The request needs an Authorization header with a bearer token";
  throw new ServiceError("unauthorized", message, { headers: bearerChallenge });
}

export function invalidTokenError(message: string): ServiceError {
  return new ServiceError("unauthorized", message, {
    headers: { "www-authenticate": 'Bearer error="invalid_token"' },
  });
}

/** @throws ServiceError unauthorized for a token that allows nothing any more */
function requireUsableToken({ token, project, memberships }: FoundToken, now: Date): void {
  const end = describeTokenEnd(token, now);
  if (end !== undefined) throw invalidTokenError(`The access token ${end}`);
  if (memberships === null || findRole(memberships, project) !== undefined) return;
  throw invalidTokenError(
    `${token.person?.name}, whose token it is, is not a member of "${project}"`,
  );
}

/** How the token's validity ended; undefined where it is valid. */
export function describeTokenEnd({ revokedAt, expiresAt }: Token, now: Date): string | undefined {
  if (revokedAt !== null) return `was revoked at ${revokedAt}`;
  const hasExpired = expiresAt !== null && Date.parse(expiresAt) <= now.getTime();
  return hasExpired ? `expired at ${expiresAt}` : undefined;
}

/** A worker with the token of an attempt at the job. */
export interface AuthenticatedWorker {
  readonly attempt: number;
  /** Records events of the worker that the service did not receive; absent where none are kept. */
  readonly catchUp?: () => Promise<void>;
}

export interface WorkerAuthentication {
  /**
   * @throws ServiceError unauthorized; unavailable where the token cannot be checked yet;
   * job_finished where the job needs no worker
   */
  authenticate(token: string, jobId: string): Promise<AuthenticatedWorker>;
}

/** Authenticates workers on this machine, each by its own secret, and says whom it heard from. */
export function createSecretAuthentication(
  { workers }: Pick<Records, "workers">,
  onHeard: (jobId: string) => void = () => {},
): WorkerAuthentication {
  return {
    async authenticate(token, jobId) {
      const attempt = await workers.findAttemptBySecret(jobId, hashSecret(token));
      if (attempt === undefined) throw wrongWorkerError(jobId);
      onHeard(jobId);
      return { attempt };
    },
  };
}

export function wrongWorkerError(jobId: string): Error {
  return invalidTokenError(`The token is not that of a worker of job "${jobId}"`);
}
