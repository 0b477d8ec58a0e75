/** An invalid field, and what is wrong with it. */
interface FieldCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

interface KubernetesErrorFacts {
  readonly status?: number;
  readonly reason: string;
  readonly causes?: readonly FieldCause[];
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** A call that the API server refused or did not answer. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  /** HTTP status; undefined when there was no response. */
  readonly status: number | undefined;
  /**
   * Reason of the API server, for instance `Conflict`; `ConnectionFailed` or `DeadlineExceeded`
   * when there was no response.
   */
  readonly reason: string;
  readonly causes: readonly FieldCause[];
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, facts: KubernetesErrorFacts) {
    super(message, { cause: facts.cause });
    this.status = facts.status;
    this.reason = facts.reason;
    this.causes = facts.causes ?? [];
    this.retryAfterSeconds = facts.retryAfterSeconds;
  }
}

export function isNotFound(error: unknown): boolean {
  return hasStatus(error, 404);
}

export function isForbidden(error: unknown): boolean {
  return hasStatus(error, 403);
}

/** Another write came first, or a precondition is not met. */
export function isConflict(error: unknown): boolean {
  return hasStatus(error, 409) && !isAlreadyExists(error);
}

export function isAlreadyExists(error: unknown): boolean {
  return hasStatus(error, 409) && error.reason === "AlreadyExists";
}

/** The resource version or the continue token is too old. */
export function isExpired(error: unknown): boolean {
  return hasStatus(error, 410);
}

/** The object breaks the schema or a validation rule. */
export function isInvalid(error: unknown): boolean {
  return hasStatus(error, 422);
}

/** An admission policy or webhook denied the request, with whatever status, or did not answer. */
export function isPolicyRefusal({ message }: KubernetesError): boolean {
  return /AdmissionPolicy '|admission webhook|calling webhook/.test(message);
}

const refusalStatuses: readonly (number | undefined)[] = [400, 403, 422];

/** By the cluster's rules, and not since the API server is busy or away. */
export function isRefusal(error: unknown): error is KubernetesError {
  if (!(error instanceof KubernetesError)) return false;
  return refusalStatuses.includes(error.status) || isPolicyRefusal(error);
}

/**
 * The object breaks the schema or a validation rule, or an admission policy or webhook has denied
 * it: the same object is not accepted later either.
 */
export function isDenial(error: unknown): boolean {
  if (!(error instanceof KubernetesError) || !refusalStatuses.includes(error.status)) return false;
  const isByPolicy = isPolicyRefusal(error) && / denied (?:the )?request/.test(error.message);
  return isByPolicy || isInvalid(error);
}

function hasStatus(error: unknown, status: number): error is KubernetesError {
  return error instanceof KubernetesError && error.status === status;
}

/**
 * `action` reads like `create jobs "a"`. `body` is the text of the response: a `Status` object, or
 * the text of a proxy.
 */
export function responseError(
  action: string,
  status: number,
  body: string,
  retryAfter?: string,
): KubernetesError {
  const statusObject = parseStatus(body);
  const message = statusObject?.message ?? (body.trim().slice(0, 500) || `HTTP status ${status}`);
  const seconds = statusObject?.details?.retryAfterSeconds ?? Number(retryAfter ?? Number.NaN);
  return new KubernetesError(`Cannot ${action}: ${message}`, {
    status,
    reason: statusObject?.reason ?? "Unknown",
    causes: statusObject?.details?.causes ?? [],
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
  });
}

interface StatusObject {
  readonly kind: "Status";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: FieldCause[]; readonly retryAfterSeconds?: number };
}

function parseStatus(body: string): StatusObject | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return isStatus(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isStatus(value: unknown): value is StatusObject {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "Status";
}

export async function ignoreNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
