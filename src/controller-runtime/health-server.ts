import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import type { ResourceWatch } from "./watch-resource.ts";

export interface HealthServerOptions {
  readonly host: string;
  /** 0 takes any that is free. */
  readonly port: number;
  readonly watched: readonly ResourceWatch[];
  readonly metrics: RuntimeMetrics;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

interface HealthResponse {
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
  const answers: Record<string, () => HealthResponse | Promise<HealthResponse>> = {
    "/healthz": () => probeResponse(watched.filter(({ isHung }) => isHung).map(hangMessage)),
    "/readyz": () => probeResponse(Array.from(waiting, notSyncedMessage)),
    "/metrics": async () => ({ status: 200, text: await metrics.text() }),
  };
  const answerTo = async (url = "") =>
    answers[url.split("?")[0] ?? ""]?.() ?? { status: 404, text: "Not found\n" };
  const server = createServer((request, response) => {
    void answerTo(request.url)
      .catch((error: unknown): HealthResponse => ({
        status: 500,
        text: `${errorMessageWithCauses(error)}\n`,
      }))
      .then(({ status, text }) =>
        response.writeHead(status, { "content-type": textFormat }).end(text),
      );
  });
  server.listen(options.port, options.host);
  await once(server, "listening");
  return {
    port: listeningPort(server.address()),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function probeResponse(reasons: readonly string[]): HealthResponse {
  if (reasons.length === 0) return { status: 200, text: "ok\n" };
  return { status: 503, text: reasons.map((reason) => `${reason}\n`).join("") };
}

function hangMessage({ resource, secondsSinceReceived }: ResourceWatch): string {
  return `Nothing was heard of ${resource} for ${Math.round(secondsSinceReceived)} s`;
}

function notSyncedMessage({ resource, problem }: ResourceWatch): string {
  return problem ?? `The list of ${resource} has not arrived yet`;
}

function listeningPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string")
    throw new TypeError("The server listens on no port");
  return address.port;
}
