import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { after } from "node:test";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import type { Cluster } from "../support/cluster/cluster.ts";
import { nodes } from "../support/cluster/test-resources.ts";

/** The log file of the only container that the stand-in has. */
export interface StandInLog {
  /** Appends lines as a kubelet would write them, with the given times. */
  readonly write: (...lines: { at: string; text: string }[]) => void;
  /** Readers are refused until this is set. */
  started: boolean;
  /** Requests so far. */
  readonly reads: number;
  /** From now on requests are accepted, and not answered until `wake()`. */
  readonly silence: () => void;
  readonly wake: () => void;
  /** Why there is no log, which is answered in its place. */
  missing: string | undefined;
  /** Bytes after which a reader's connection breaks, once. */
  breakAfterBytes: number | undefined;
}

/**
 * Stands in for a kubelet behind the real API server: serves one log with `sinceTime` and
 * `timestamps`, and fails on demand. Its node takes no pods but those that name it.
 */
export async function startStandInKubelet(
  cluster: Cluster,
  client: KubernetesClient,
  node: string,
): Promise<StandInLog> {
  const log = createLog();
  const folder = dirname(cluster.kubeconfig);
  const [key = "", cert = ""] = await Promise.all(
    ["apiserver.key", "apiserver.crt"].map((name) => readFile(join(folder, name))),
  );
  const answer = (since: string, response: ServerResponse) => {
    if (log.missing !== undefined) return void response.writeHead(200).end(log.missing);
    if (!log.started) return void response.writeHead(400).end("container is waiting to start");
    response.writeHead(200, { "content-type": "text/plain" });
    const bytes = Buffer.from(log.read(since));
    const { breakAfterBytes = Infinity } = log;
    if (bytes.length <= breakAfterBytes) return void response.end(bytes);
    log.breakAfterBytes = undefined;
    response.write(bytes.subarray(0, breakAfterBytes), () => response.destroy());
  };
  const server = createServer({ key, cert }, (request, response) => {
    const query = new URL(request.url ?? "", "https://kubelet").searchParams;
    log.reads++;
    void log.awake().then(() => answer(query.get("sinceTime") ?? "1970-01-01T00:00:00Z", response));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close().closeAllConnections());
  after(() => cluster.kubectl(["delete", "node", node]));
  await registerNode(client, node, (server.address() as AddressInfo).port);
  return log;
}

function createLog() {
  const lines: { at: string; text: string }[] = [];
  let silence: PromiseWithResolvers<void> | undefined;
  return {
    started: true,
    reads: 0,
    silence: () => void (silence ??= Promise.withResolvers()),
    wake() {
      silence?.resolve();
      silence = undefined;
    },
    awake: async () => silence?.promise,
    missing: undefined as string | undefined,
    breakAfterBytes: undefined as number | undefined,
    write: (...added: typeof lines) => void lines.push(...added),
    read: (since: string) =>
      lines
        .filter(({ at }) => Date.parse(at) >= Date.parse(since))
        .map(({ at, text }) => `${at} ${text}\n`)
        .join(""),
  };
}

async function registerNode(client: KubernetesClient, name: string, port: number): Promise<void> {
  await client.create(nodes, { metadata: { name }, spec: { unschedulable: true } });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  await client.patch(nodes, name, { status }, { subresource: "status" });
}
