import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { listenLocally } from "../support/listen-locally.ts";

/** An answer of the service, as text, and the request that it is for. */
export interface RelayedAnswer {
  readonly request: string;
  readonly answer: string;
}

/** Stands between a client and the service at a base URL, and keeps what they say. */
export async function relayAnswers(t: TestContext, baseUrl: string) {
  const answers: RelayedAnswer[] = [];
  const relay = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = "GET", url = "", rawHeaders } = incoming;
    const body = await buffer(incoming);
    const hasBody = method !== "GET" && method !== "HEAD" && body.length > 0;
    const answer = await fetch(new URL(url, baseUrl), {
      method,
      headers: endToEndHeaders(rawHeaders),
      body: hasBody ? new Uint8Array(body) : null,
      redirect: "manual",
    });
    const content = Buffer.from(await answer.arrayBuffer());
    const headers = [...answer.headers].filter(([name]) => !hopHeaders.has(name));
    const said = `${JSON.stringify(headers)}\n${content.toString("latin1")}`;
    answers.push({ request: `${method} ${url} ${body.toString("latin1")}`, answer: said });
    outgoing.writeHead(answer.status, Object.fromEntries(headers)).end(content);
  };
  const server = createServer((incoming, outgoing) => {
    relay(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const url = await listenLocally(t, server);
  return { baseUrl: `${url.replace(/\/$/, "")}/v1`, answers };
}

const hopHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "transfer-encoding",
]);

function endToEndHeaders(raw: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i] ?? "", raw[i + 1] ?? ""]);
  return pairs.filter(([name]) => !hopHeaders.has(name.toLowerCase()));
}
