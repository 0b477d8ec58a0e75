import type { Readable } from "node:stream";
import { Agent, type Dispatcher, request } from "undici";
import { readXmlText } from "./read-xml-text.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";

/** A file is answered when it is stored. */
const storedLimitMs = 10 * 60_000;
const silenceLimitMs = 60_000;

interface DirectRequest {
  readonly method?: "GET" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Readable;
  /** Statuses of answers that are wanted. */
  readonly statuses: readonly number[];
  readonly signal: AbortSignal | undefined;
}

/**
 * A request to an address that the service gave, without the worker's token.
 * @throws Error, without the query of the address, which is a secret
 */
export async function requestDirectly(
  url: string | undefined,
  { method = "GET", headers, body, statuses, signal }: DirectRequest,
): Promise<Dispatcher.ResponseData> {
  if (url === undefined) throw new Error("The service named no address of the file");
  const agent = new Agent({
    connect: { timeout: 10_000 },
    headersTimeout: storedLimitMs,
    bodyTimeout: silenceLimitMs,
  });
  const answer = await request(url, {
    dispatcher: agent,
    method,
    headers,
    body: body ?? null,
    signal: signal ?? null,
  });
  answer.body.once("close", () => void agent.destroy());
  if (statuses.includes(answer.statusCode)) return answer;
  const reason = readXmlText(await answer.body.text(), "Code") ?? "no code";
  const address = stripUrlSecrets(url);
  throw new Error(`The storage answered ${answer.statusCode} to ${method} ${address} (${reason})`);
}
