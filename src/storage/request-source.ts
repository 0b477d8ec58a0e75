import { type Dispatcher, request } from "undici";
import { type Connections, openConnections } from "./connections.ts";
import { checkUrl } from "./public-address.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";
import { ServiceError } from "../contract/errors.ts";
import type { LocatedSource } from "../contract/worker-protocol/transfers.ts";

interface RequestOptions {
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Whether `http:` and hosts that are not on the public internet are allowed. */
  readonly allowPrivateAddresses: boolean;
  readonly signal: AbortSignal;
}

/**
 * Asks for a file, or for the rest of one.
 * @returns an answer with the status 200 or 206
 * @throws ServiceError, PermanentDownloadError, and others where it may be asked again
 */
export async function requestSource(
  source: LocatedSource,
  options: RequestOptions,
): Promise<Dispatcher.ResponseData> {
  await using stack = new AsyncDisposableStack();
  const connections = stack.use(openConnections(options));
  const answer = await followRedirects(source, { ...options, connections });
  const open = stack.move();
  answer.body.once("close", () => void open.disposeAsync());
  return answer;
}

/** An answer that another attempt would get again. */
export class PermanentDownloadError extends Error {}

const maxRedirects = 5;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

interface RedirectOptions extends RequestOptions {
  readonly connections: Connections;
}

/**
 * Requests a file. Follows redirects itself, to check each address like the first. Another origin
 * gets no headers of the source and is not trusted.
 */
async function followRedirects(
  source: LocatedSource,
  { connections, headers, allowPrivateAddresses, signal }: RedirectOptions,
): Promise<Dispatcher.ResponseData> {
  const first = new URL(source.url);
  const asked = { "accept-encoding": "identity", ...headers };
  let url = first;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const isOrigin = url.origin === first.origin;
    const isTrusted = isOrigin && source.isTrusted;
    checkUrl(url, isTrusted || allowPrivateAddresses);
    const answer = await request(url, {
      dispatcher: isTrusted ? connections.trusted : connections.strangers,
      headers: isOrigin ? { ...source.headers, ...asked } : asked,
      signal,
    });
    const location = readAnswerHeader(answer, "location");
    if (!redirectStatuses.has(answer.statusCode) || location === undefined) {
      await checkAnswerStatus(answer, url);
      return answer;
    }
    await answer.body.dump();
    if (!URL.canParse(location, url.href)) {
      throw new PermanentDownloadError(`redirects to "${location}", which is not a URL`);
    }
    url = new URL(location, url);
  }
  throw new PermanentDownloadError(`redirects more than ${maxRedirects} times`);
}

async function checkAnswerStatus(answer: Dispatcher.ResponseData, url: URL): Promise<void> {
  const { statusCode } = answer;
  if (statusCode === 200 || statusCode === 206) return;
  await answer.body.dump();
  const message = `${answeredStatus}${statusCode}`;
  if (statusCode === 404 || statusCode === 410) {
    const source = stripUrlSecrets(url);
    throw new ServiceError("model_not_found", `"${source}" does not exist: ${message}`);
  }
  if (statusCode === 429 || statusCode >= 500) throw new Error(message);
  throw new PermanentDownloadError(message);
}

const answeredStatus = "the host answered ";

/**
 * Whether the host of a file lets nobody see whether it exists, as buckets do whose files may not be
 * listed. The error may have come from a service, as its text.
 */
export function isAccessRefusal(error: ServiceError): boolean {
  return [401, 403].some((status) => error.message.endsWith(`${answeredStatus}${status}`));
}

export function readAnswerHeader(
  answer: Pick<Dispatcher.ResponseData, "headers">,
  name: string,
): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
