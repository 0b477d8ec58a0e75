import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { RuntimeMetrics } from "./metrics.ts";
import type { Watched } from "./watch-resource.ts";

export interface HealthServerOptions {
  readonly host: string;
  /** 0 takes any that is free. */
  readonly port: number;
  readonly watched: readonly Watched[];
  readonly metrics: RuntimeMetrics;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Answers probes and monitoring. `/healthz` fails when a watch has died for good: the process should be started anew.
 * `/readyz` fails until every cache is filled. Both say why.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const { watched, metrics } = options;
  const waiting = new Set(watched);
  for (const each of watched) {
    each.synced.then(
      () => waiting.delete(each),
      () => {},
    );
  }
  const answers: Record<string, (response: ServerResponse) => void | Promise<void>> = {
    "/healthz": (response) => answerProbe(response, watched.filter(({ isHung }) => isHung).map(hangOf)),
    "/readyz": (response) => answerProbe(response, Array.from(waiting, delayOf)),
    "/metrics": async (response) => {
      const text = await metrics.text();
      response.setHeader("content-type", "text/plain; version=0.0.4; charset=utf-8").end(text);
    },
  };
  const server = createServer((request, response) => {
    const answer = answers[request.url?.split("?")[0] ?? ""];
    if (answer === undefined) response.writeHead(404).end("Not found\n");
    else void answer(response);
  });
  server.listen(options.port, options.host);
  await once(server, "listening");
  return {
    port: portOf(server.address()),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answerProbe(response: ServerResponse, reasons: readonly string[]): void {
  const text = reasons.length === 0 ? ["ok"] : reasons;
  response.writeHead(reasons.length === 0 ? 200 : 503, { "content-type": "text/plain; charset=utf-8" });
  response.end(text.map((line) => `${line}\n`).join(""));
}

function hangOf({ resource, secondsSinceHeard }: Watched): string {
  return `Nothing was heard of ${resource} for ${Math.round(secondsSinceHeard)} s`;
}

function delayOf({ resource, problem }: Watched): string {
  return problem ?? `The list of ${resource} has not arrived yet`;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new TypeError("The server listens on no port");
  return address.port;
}
