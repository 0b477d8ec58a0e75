import { EventEmitter, once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { after } from "node:test";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import type { Cluster } from "../support/cluster/cluster.ts";

/** The log file of the one container that the stand-in knows. */
export interface StandInLog {
  /** Appends lines as a kubelet would write them, with the given times. */
  readonly write: (...lines: { at: string; text: string }[]) => void;
  /** Forgets what was written, as when the file is replaced. */
  readonly rotate: () => void;
  /** Breaks the connections of those who read. */
  readonly cut: () => void;
  /** Ends what follows, as when the container ends. */
  readonly end: () => void;
  /** Resolves when a reader has opened the log for the nth time and got what is there. */
  readonly opened: (times: number) => Promise<void>;
  /** Readers are refused until this is set. */
  started: boolean;
  /** Bytes after which a reader's connection breaks, once. */
  breakAfterBytes: number | undefined;
}

/**
 * Stands in for a kubelet behind the real API server: serves one log with `sinceTime`, `timestamps` and `follow`, and
 * fails as told. Its node takes no pods but those that name it.
 */
export async function startStandInKubelet(
  cluster: Cluster,
  client: KubernetesClient,
  node: string,
): Promise<StandInLog> {
  const log = createLog();
  const folder = dirname(cluster.kubeconfig);
  const [key, cert] = await Promise.all(
    ["apiserver.key", "apiserver.crt"].map((name) => readFile(join(folder, name))),
  );
  const server = createServer(
    { ...(key && { key }), ...(cert && { cert }) },
    (request, response) => {
      const query = new URL(request.url ?? "", "https://kubelet").searchParams;
      if (!log.started) return void response.writeHead(400).end("container is waiting to start");
      const since = query.get("sinceTime");
      response.writeHead(200, { "content-type": "text/plain" });
      const send = (lines: readonly StoredLine[]) => {
        const wanted = lines.filter(
          ({ at }) => since === null || Date.parse(at) >= Date.parse(since),
        );
        const bytes = Buffer.from(wanted.map(({ at, text }) => `${at} ${text}`).join(""));
        const { breakAfterBytes = Infinity } = log;
        if (bytes.length <= breakAfterBytes) return void response.write(bytes);
        log.breakAfterBytes = undefined;
        response.write(bytes.subarray(0, breakAfterBytes), () => response.destroy());
      };
      send(log.lines);
      if (query.get("follow") !== "true") response.end();
      const subscriptions = {
        written: send,
        cut: () => response.destroy(),
        ended: () => response.end(),
      };
      for (const [event, listener] of Object.entries(subscriptions)) {
        log.changes.on(event, listener);
        response.on("close", () => log.changes.off(event, listener));
      }
      log.times += 1;
      log.changes.emit("opened");
    },
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close().closeAllConnections());
  after(() => cluster.kubectl(["delete", "node", node]));
  await registerNode(client, node, (server.address() as AddressInfo).port);
  return log;
}

interface StoredLine {
  readonly at: string;
  /** With its line feed. */
  readonly text: string;
}

function createLog() {
  const changes = new EventEmitter().setMaxListeners(0);
  return {
    changes,
    lines: [] as StoredLine[],
    times: 0,
    started: true,
    breakAfterBytes: undefined as number | undefined,
    write(...lines: StoredLine[]) {
      const stored = lines.map(({ at, text }) => ({ at, text: `${text}\n` }));
      this.lines.push(...stored);
      changes.emit("written", stored);
    },
    rotate() {
      this.lines.length = 0;
    },
    cut: () => void changes.emit("cut"),
    end: () => void changes.emit("ended"),
    async opened(times: number) {
      while (this.times < times) await once(changes, "opened");
    },
  };
}

async function registerNode(client: KubernetesClient, name: string, port: number): Promise<void> {
  await client.create(resources.nodes, { metadata: { name }, spec: { unschedulable: true } });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  await client.patch(resources.nodes, name, { status }, { subresource: "status" });
}
