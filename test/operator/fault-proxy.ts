import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";
import type { ControlPlane } from "../support/cluster/control-plane.ts";

export interface ProxiedRequest {
  readonly method: string;
  /** For instance `jobs` or `compressionjobs/status`. */
  readonly resource: string;
  readonly isWatch: boolean;
  /** Nothing is kept of it. */
  readonly isDryRun: boolean;
}

/** What becomes of a request instead of its answer. */
export type Fault =
  | "none"
  /** The connection breaks before the request reaches the API server. */
  | "lost"
  /** The API server does what it is asked to, and the connection breaks before its answer. */
  | "unanswered"
  /** The request gets no answer while the connection lasts. */
  | "silent"
  /** The API server gets the request two seconds later, as where its disk is slow. */
  | "slow"
  /** The API server rejects the request. */
  | { readonly status: number; readonly reason: string; readonly retryAfterSeconds?: number };

/** A way to a control plane's API server on which requests meet with accidents. */
export interface FaultProxy extends AsyncDisposable {
  /** Path of a kubeconfig that leads here. */
  readonly kubeconfig: string;
  /** Every request so far that was not lost. */
  readonly forwarded: readonly ProxiedRequest[];
  /** Breaks all watches; they can be opened again. */
  cutWatches(): void;
  /** Delays the events of a resource's watches until the returned function is called. */
  pauseWatches(resource: string): () => void;
  /** Breaks all connections and takes no more. */
  close(): Promise<void>;
}

const slowMs = 2_000;
let proxies = 0;

export async function startFaultProxy(
  controlPlane: ControlPlane,
  judge: (request: ProxiedRequest) => Fault = () => "none",
): Promise<FaultProxy> {
  const { url, adminToken, certificateAuthority, folder } = controlPlane;
  const agent = new Agent({ ca: certificateAuthority, keepAlive: true });
  const forwarded: ProxiedRequest[] = [];
  const watches = new Map<
    ServerResponse,
    { readonly resource: string; readonly answer: IncomingMessage }
  >();
  const pausedResources = new Set<string>();

  const forward = (
    message: IncomingMessage,
    response: ServerResponse,
    facts: ProxiedRequest,
    isAnswered: boolean,
  ) => {
    forwarded.push(facts);
    const { method, headers } = message;
    const onward = httpsRequest(
      new URL(message.url ?? "", url),
      { agent, method, headers },
      (answer) => {
        if (!isAnswered) {
          answer.resume().once("end", () => response.destroy());
          return;
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        // An answer that breaks off does so here, too.
        pipeline(answer, response, () => {});
        if (!facts.isWatch) return;
        watches.set(response, { resource: facts.resource, answer });
        if (pausedResources.has(facts.resource)) answer.pause();
      },
    );
    onward.on("error", () => response.destroy());
    response.on("close", () => {
      watches.delete(response);
      onward.destroy();
    });
    message.pipe(onward);
  };

  const server = createServer((message, response) => {
    const facts = describeRequest(message);
    const fault = judge(facts);
    if (fault === "lost") response.destroy();
    else if (fault === "silent") message.resume();
    else if (fault === "slow") setTimeout(() => forward(message, response, facts, true), slowMs);
    else if (typeof fault === "string") forward(message, response, facts, fault === "none");
    else message.resume().once("end", () => refuse(response, fault));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const kubeconfig = join(folder, `proxy-${++proxies}.json`);
  await writeFile(kubeconfig, proxyKubeconfig(`http://127.0.0.1:${port}`, adminToken));
  const close = async () => {
    server.close();
    server.closeAllConnections();
    agent.destroy();
  };
  return {
    kubeconfig,
    forwarded,
    cutWatches() {
      for (const response of watches.keys()) response.destroy();
    },
    pauseWatches(resource) {
      const each = (change: (answer: IncomingMessage) => void) => {
        for (const watch of watches.values()) if (watch.resource === resource) change(watch.answer);
      };
      pausedResources.add(resource);
      each((answer) => answer.pause());
      return () => {
        pausedResources.delete(resource);
        each((answer) => answer.resume());
      };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function describeRequest({ method = "", url = "" }: IncomingMessage): ProxiedRequest {
  const { pathname, searchParams } = new URL(url, "http://proxy");
  const [, resource = "", , subresource] =
    /\/namespaces\/[^/]+\/([^/]+)(\/[^/]+)?(?:\/([^/]+))?$/.exec(pathname) ?? [];
  return {
    method,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    isWatch: searchParams.get("watch") !== null,
    isDryRun: searchParams.has("dryRun"),
  };
}

function refuse(
  response: ServerResponse,
  { status, reason, retryAfterSeconds }: Exclude<Fault, string>,
): void {
  const headers = {
    "content-type": "application/json",
    ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
  };
  response.writeHead(status, headers);
  response.end(
    JSON.stringify({
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      reason,
      message: reason,
      code: status,
    }),
  );
}

function proxyKubeconfig(server: string, token: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "proxy", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "proxy", context: { cluster: "proxy", user: "admin" } }],
    "current-context": "proxy",
  });
}
