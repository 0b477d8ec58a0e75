import { createServer, request as send } from "node:http";
import { connect } from "node:net";
import { pipeline } from "node:stream";
import type { TestContext } from "node:test";
import { listenLocally } from "../../support/listen-locally.ts";

export interface ForwardProxy {
  readonly url: string;
  /** Hosts that were asked for, in that order. */
  readonly hosts: readonly string[];
}

/** A proxy as companies have it: the only one that knows where hosts are. `origins` are addresses on this machine, by host. */
export async function startForwardProxy(
  t: TestContext,
  origins: Readonly<Record<string, string>>,
): Promise<ForwardProxy> {
  const hosts: string[] = [];
  const find = (host: string) => {
    hosts.push(host);
    const origin = origins[host];
    return origin === undefined ? undefined : new URL(origin);
  };
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? "", "http://unknown");
    const origin = find(asked.hostname);
    if (origin === undefined) return void response.writeHead(502).end();
    const { method, headers } = request;
    const target = new URL(`${asked.pathname}${asked.search}`, origin);
    const onward = send(target, { method, headers: { ...headers, host: asked.host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // An answer that breaks off does so here, too.
      pipeline(answer, response, () => {});
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.on("connect", (request, socket, head) => {
    const origin = find(new URL(`http://${request.url}`).hostname);
    if (origin === undefined) return void socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const onward = connect(Number(origin.port), origin.hostname, () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
    socket.on("close", () => onward.destroy());
  });
  return { url: await listenLocally(t, server), hosts };
}
