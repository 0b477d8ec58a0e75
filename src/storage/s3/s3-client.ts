import { setTimeout as delay } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import { Agent, type Dispatcher, request } from "undici";
import { ServiceError } from "../../contract/errors.ts";
import { objectUrl, type S3Access } from "./s3-address.ts";
import { createS3Error, S3Error } from "./s3-error.ts";

/** How often a request is sent that is not answered, or with a failure of the server. */
const maxAttempts = 5;
const firstRetryMs = 100;
/** Servers copy parts and join them before they answer. */
const answerLimitMs = 5 * 60_000;
const silenceLimitMs = 60_000;

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to one bucket; repeated where the server fails. */
export interface S3Client extends AsyncDisposable {
  readonly bucket: string;
  /**
   * The body of the answer is the caller's to read.
   * @throws S3Error for a refusal; ServiceError unavailable, also for one of access, storage_full
   */
  open(question: S3Request): Promise<Dispatcher.ResponseData>;
  /** As `open()`, with the answer read to its end. */
  send(question: S3Request): Promise<S3Answer>;
}

interface S3Answer {
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
}

export function createS3Client(access: S3Access): S3Client {
  const agent = new Agent({
    connect: { timeout: 10_000 },
    headersTimeout: answerLimitMs,
    bodyTimeout: silenceLimitMs,
  });
  const { accessKeyId, secretAccessKey, region, bucket } = access;
  const credentials = { accessKeyId, secretAccessKey, region, service: "s3", cache: new Map() };
  const sendOnce = async ({ method, key, query, headers = {}, body, signal }: S3Request) => {
    const url = objectUrl(access, key, query).href;
    const signed = await new AwsV4Signer({ method, url, headers, ...credentials }).sign();
    const answer = await request(signed.url, {
      dispatcher: agent,
      method,
      headers: Object.fromEntries(signed.headers),
      body: body ?? null,
      signal: signal ?? null,
    });
    if (answer.statusCode < 300) return answer;
    throw createS3Error(`${method} ${key}`, answer.statusCode, await answer.body.text());
  };
  return {
    bucket,
    open: async (question) => repeatRequest(question, sendOnce),
    send: async (question) =>
      repeatRequest(question, async (sent) => {
        const { headers, body } = await sendOnce(sent);
        return { headers, text: await body.text() };
      }),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

async function repeatRequest<T>(
  question: S3Request,
  sendOnce: (question: S3Request) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await sendOnce(question);
    } catch (error) {
      question.signal?.throwIfAborted();
      if (isRefusal(error)) throw refusedAccessError(error) ?? error;
      if (isFull(error)) {
        throw new ServiceError("storage_full", "The S3 server has no space left", { cause: error });
      }
      if (attempt === maxAttempts) throw unavailableError(error);
    }
    await delay(firstRetryMs * 2 ** attempt, undefined, { signal: question.signal });
  }
}

function isRefusal(error: unknown): boolean {
  const temporary = ["SlowDown", "RequestTimeout", "OperationAborted"];
  return (
    error instanceof S3Error &&
    error.status < 500 &&
    error.status !== 429 &&
    !temporary.includes(error.code)
  );
}

/** A key that is no longer valid, lacks a right or is used by a machine whose clock is wrong. */
function refusedAccessError(error: unknown): ServiceError | undefined {
  if (!(error instanceof S3Error) || ![401, 403].includes(error.status)) return undefined;
  return new ServiceError("unavailable", error.message, { cause: error });
}

function isFull(error: unknown): boolean {
  const codes = ["QuotaExceeded", "XMinioStorageFull"];
  return error instanceof S3Error && (error.status === 507 || codes.includes(error.code));
}

function unavailableError(cause: unknown): ServiceError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new ServiceError("unavailable", `The S3 server does not answer: ${reason}`, { cause });
}
