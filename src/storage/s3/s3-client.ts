import { Readable } from "node:stream";
import { AwsV4Signer } from "aws4fetch";
import { Agent, type Dispatcher, errors, request } from "undici";
import { ServiceError } from "../../contract/errors.ts";
import { backOffMs, retry } from "../../limits/retry.ts";
import "../../limits/stray-answers.ts";
import { readXmlText } from "../read-xml-text.ts";

export interface S3Limits {
  /** Time in which no byte is taken of a request and none is sent of its answer, milliseconds. */
  readonly silenceMs: number;
  /** The same while large objects are joined or copied: some servers answer only at the end. */
  readonly joinMs: number;
}

const usualLimits: S3Limits = { silenceMs: 20_000, joinMs: 5 * 60_000 };
/** Of a body, each of which is a sign of life when the server takes it. */
const pieceBytes = 256 * 1024;

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  /** Whether the server joins or copies large objects before it answers. */
  readonly joins?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to one bucket; repeated where the server fails. */
export interface S3Client extends AsyncDisposable {
  readonly bucket: string;
  /**
   * The body of the answer is the caller's to read.
   * @throws S3Error for a refusal; ServiceError unavailable, also for one of access, storage_full
   */
  open(request: S3Request): Promise<Dispatcher.ResponseData>;
  /** As `open()`, with the answer read to its end. */
  send(request: S3Request): Promise<S3Response>;
}

interface S3Response {
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
}

export function createS3Client(access: S3Access, limits: S3Limits = usualLimits): S3Client {
  const agent = new Agent({ connect: { timeout: 10_000 }, bodyTimeout: limits.silenceMs });
  const { accessKeyId, secretAccessKey, region, bucket } = access;
  const credentials = { accessKeyId, secretAccessKey, region, service: "s3", cache: new Map() };
  const sendOnce = async ({ method, key, query, headers = {}, body, ...sent }: S3Request) => {
    const url = objectUrl(access, key, query).href;
    const signed = await new AwsV4Signer({ method, url, headers, ...credentials }).sign();
    const answer = await request(signed.url, {
      dispatcher: agent,
      method,
      headers: { ...Object.fromEntries(signed.headers), ...lengthHeader(body) },
      body: body instanceof Uint8Array ? Readable.from(divide(body)) : (body ?? null),
      headersTimeout: sent.joins === true ? limits.joinMs : limits.silenceMs,
      signal: sent.signal ?? null,
    });
    if (answer.statusCode < 300) return answer;
    throw createS3Error(`${method} ${key}`, answer.statusCode, await answer.body.text());
  };
  return {
    bucket,
    open: async (request) => repeatRequest(() => sendOnce(request), request.signal),
    send: async (request) =>
      repeatRequest(async () => {
        const { headers, body } = await sendOnce(request);
        return { headers, text: await body.text() };
      }, request.signal),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

/** Without it, a body in pieces is sent without its length, which no S3 server takes. */
function lengthHeader(body: S3Request["body"]): Record<string, string> {
  return body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
}

function* divide(content: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < content.length; at += pieceBytes) {
    yield content.subarray(at, at + pieceBytes);
  }
}

/** A bucket and the key that opens it. */
export interface S3Access {
  /** Address of the server, such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Whether the bucket is in the path of an address, else in its host. */
  readonly isPathStyle: boolean;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Address of an object; without a key that of the bucket. */
function objectUrl(
  { endpoint, bucket, isPathStyle }: Omit<S3Access, "accessKeyId" | "secretAccessKey">,
  key: string,
  query: Readonly<Record<string, string>> = {},
): URL {
  const url = new URL(endpoint);
  const base = url.pathname.replace(/\/$/, "");
  if (!isPathStyle) url.host = `${bucket}.${url.host}`;
  url.pathname = `${base}${isPathStyle ? `/${bucket}` : ""}/${encodeKey(key)}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}

/** As signatures have it: all but the unreserved characters of RFC 3986 and slashes. */
export function encodeKey(key: string): string {
  return encodeURIComponent(key)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** An answer of an S3 server that repeating the request does not change. */
export class S3Error extends Error {
  readonly status: number;
  /** Code of the server, such as `AccessDenied`; empty where it named none. */
  readonly code: string;

  constructor(message: string, { status, code }: { status: number; code: string }) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function createS3Error(call: string, status: number, xml: string): S3Error {
  const code = readXmlText(xml, "Code") ?? "";
  const reason = readXmlText(xml, "Message") ?? "";
  const details = [code, reason].filter((text) => text !== "").join(": ");
  const message = `The S3 server answered ${status} to ${call}${details && `: ${details}`}`;
  return new S3Error(message, { status, code });
}

/** How often a request is sent that is not answered, or with a failure of the server. */
const maxAttempts = 5;
/** How often to a server that is silent: another connection may reach another one. */
const maxSilentAttempts = 2;
const firstRetryMs = 200;
const maxRetryMs = 5_000;
const silences = [
  errors.ConnectTimeoutError,
  errors.HeadersTimeoutError,
  errors.BodyTimeoutError,
] as const;

/** @throws S3Error for a refusal; ServiceError unavailable, storage_full */
async function repeatRequest<T>(
  sendOnce: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  let silent = 0;
  const delayAfter = (error: unknown, attempt: number) => {
    if (isRefusal(error)) throw refusedAccessError(error) ?? error;
    if (isFull(error)) {
      throw new ServiceError("storage_full", "The S3 server has no space left", { cause: error });
    }
    if (silences.some((silence) => error instanceof silence)) silent++;
    if (attempt === maxAttempts || silent === maxSilentAttempts) throw unavailableError(error);
    return backOffMs(attempt, maxRetryMs, firstRetryMs);
  };
  return retry(sendOnce, delayAfter, { signal });
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

/** Whether the server failed at a request, and would fail at one that cleans up. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}

/** Whether the server has no object or upload of that name. */
export function isMissing(error: unknown): boolean {
  return error instanceof S3Error && error.status === 404;
}

interface PresignedRequest {
  readonly method: "GET" | "PUT";
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly seconds: number;
}

/** Address that lets anyone send a request for a while, with the headers that are signed. */
export async function presignRequest(
  access: S3Access,
  { method, key, headers = {}, seconds }: PresignedRequest,
): Promise<string> {
  const { accessKeyId, secretAccessKey, region } = access;
  const url = objectUrl(access, key, { "X-Amz-Expires": String(seconds) }).href;
  const signing = { method, url, headers, accessKeyId, secretAccessKey, region };
  const signer = new AwsV4Signer({ ...signing, service: "s3", signQuery: true });
  return (await signer.sign()).url.href;
}
