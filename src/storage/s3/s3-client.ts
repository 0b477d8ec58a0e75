import { Readable } from "node:stream";
import { AwsV4Signer } from "aws4fetch";
import { Agent, type Dispatcher, request } from "undici";
import { repeatRequest } from "./repeat-request.ts";
import { objectUrl, type S3Access } from "./s3-address.ts";
import { createS3Error } from "./s3-error.ts";

export interface S3Limits {
  /** Time in which no byte is taken of a request and none is sent of its answer, milliseconds. */
  readonly silenceMs: number;
  /** The same while large objects are joined or copied: some servers answer at the end alone. */
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
  open(question: S3Request): Promise<Dispatcher.ResponseData>;
  /** As `open()`, with the answer read to its end. */
  send(question: S3Request): Promise<S3Answer>;
}

interface S3Answer {
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
    open: async (question) => repeatRequest(() => sendOnce(question), question.signal),
    send: async (question) =>
      repeatRequest(async () => {
        const { headers, body } = await sendOnce(question);
        return { headers, text: await body.text() };
      }, question.signal),
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
