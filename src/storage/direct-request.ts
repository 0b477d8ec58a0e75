import type { Readable } from "node:stream";
import { Agent, type Dispatcher, request } from "undici";
import { readXmlText } from "./read-xml-text.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";

/** Time in which no byte is taken or sent, milliseconds. A file is answered when it is stored. */
const silenceLimitMs = { GET: 30_000, PUT: 2 * 60_000 } as const;

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
    headersTimeout: silenceLimitMs[method],
    bodyTimeout: silenceLimitMs.GET,
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
