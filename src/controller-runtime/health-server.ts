import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import type { ResourceWatch } from "./watch-resource.ts";

interface HealthServerOptions {
  /** Every address without it. */
  readonly host: string | undefined;
  /** 0 for any free port. */
  readonly port: number;
  readonly watched: readonly ResourceWatch[];
  readonly metrics: RuntimeMetrics;
}

interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

interface HealthResponse {
  readonly status: number;
  readonly text: string;
}

type Endpoints = Readonly<Record<string, () => HealthResponse | Promise<HealthResponse>>>;

/** An import would load all that the module exports on demand, such as WebSocket: 9 MB. */
const { createServer } = process.getBuiltinModule("node:http");

/** The Prometheus text format, which other clients read as plain text. */
const textFormat = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Serves probes and metrics. `/healthz` fails when a watch hangs: the process should be restarted.
 * `/readyz` fails until every cache has synced. Both respond with the reason.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const endpoints = createEndpoints(options);
  const server = createServer((request, response) => {
    void respondTo(endpoints, request.url).then(({ status, text }) =>
      response.writeHead(status, { "content-type": textFormat }).end(text),
    );
  });
  server.listen(options.port, options.host);
  await once(server, "listening");
  return { port: listeningPort(server.address()), close: () => closeHealthServer(server) };
}

function createEndpoints({ watched, metrics }: HealthServerOptions): Endpoints {
  const unsynced = new Set(watched);
  for (const each of watched) {
    each.synced.then(
      () => unsynced.delete(each),
      () => {},
    );
  }
  return {
    "/healthz": () => probeResponse(watched.filter(({ isHung }) => isHung).map(hangMessage)),
    "/readyz": () => probeResponse(Array.from(unsynced, notSyncedMessage)),
    "/metrics": async () => ({ status: 200, text: await metrics.text() }),
  };
}

async function respondTo(endpoints: Endpoints, url = ""): Promise<HealthResponse> {
  try {
    const respond = endpoints[url.split("?")[0] ?? ""];
    return (await respond?.()) ?? { status: 404, text: "Not found\n" };
  } catch (error) {
    return { status: 500, text: `${errorMessageWithCauses(error)}\n` };
  }
}

function probeResponse(reasons: readonly string[]): HealthResponse {
  if (reasons.length === 0) return { status: 200, text: "ok\n" };
  return { status: 503, text: reasons.map((reason) => `${reason}\n`).join("") };
}

function hangMessage({ resource, secondsSinceReceived }: ResourceWatch): string {
  return `The watch of ${resource} received nothing for ${Math.round(secondsSinceReceived)} s`;
}

function notSyncedMessage({ resource, problem }: ResourceWatch): string {
  return problem ?? `The list of ${resource} has not arrived yet`;
}

async function closeHealthServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

function listeningPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") {
    throw new TypeError("The server listens on no port");
  }
  return address.port;
}
