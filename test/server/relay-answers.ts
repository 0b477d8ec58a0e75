import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { listenLocally } from "../support/listen-locally.ts";

/** An answer of the service, as text, and the request that it is for. */
interface RelayedAnswer {
  readonly request: string;
  readonly answer: string;
}

/** Stands between a client and the service at a base URL, and keeps what they say. */
export async function relayAnswers(t: TestContext, baseUrl: string) {
  const answers: RelayedAnswer[] = [];
  const relay = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url = "", headers } = incoming;
    const body = await buffer(incoming);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const forwarded = request(new URL(url, baseUrl), { method, headers }, resolve);
    forwarded.on("error", reject).end(body);
    const answer = await promise;
    const content = await buffer(answer);
    const said = `${answer.rawHeaders.join("\n")}\n${content.toString("latin1")}`;
    answers.push({ request: `${method} ${url} ${body.toString("latin1")}`, answer: said });
    outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders).end(content);
  };
  const server = createServer((incoming, outgoing) => {
    relay(incoming, outgoing).catch(() => outgoing.destroy());
  });
  return { baseUrl: `${await listenLocally(t, server)}/v1`, answers };
}
