import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf } from "./json-log.ts";
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

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Prometheus' text format, which is plain text to everybody else. */
const textFormat = "text/plain; version=0.0.4; charset=utf-8";

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
  const answers: Record<string, () => Answer | Promise<Answer>> = {
    "/healthz": () => probeAnswer(watched.filter(({ isHung }) => isHung).map(hangOf)),
    "/readyz": () => probeAnswer(Array.from(waiting, delayOf)),
    "/metrics": async () => ({ status: 200, text: await metrics.text() }),
  };
  const answerTo = async (url = "") => answers[url.split("?")[0] ?? ""]?.() ?? { status: 404, text: "Not found\n" };
  const server = createServer((request, response) => {
    void answerTo(request.url)
      .catch((error: unknown): Answer => ({ status: 500, text: `${messageOf(error)}\n` }))
      .then(({ status, text }) => response.writeHead(status, { "content-type": textFormat }).end(text));
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

function probeAnswer(reasons: readonly string[]): Answer {
  if (reasons.length === 0) return { status: 200, text: "ok\n" };
  return { status: 503, text: reasons.map((reason) => `${reason}\n`).join("") };
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
