import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { connect } from "./connect-test-cluster.ts";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Stands in for an API server that fails in ways that a real one cannot be made to: one answer after the other, the last
 * one again and again. Gives a client of it and the requests that it has seen.
 */
export async function connectStandIn(
  ...answers: Answer[]
): Promise<{ client: KubernetesClient; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(seen.length, answers.length - 1)];
    seen.push(`${request.method} ${request.url}`);
    request.resume().on("end", () => answer?.(request, response));
  }).listen(0, "127.0.0.1");
  after(() => server.close().closeAllConnections());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = await connect({
    kubeconfig: await writeStandInKubeconfig(`http://127.0.0.1:${port}`),
  });
  return { client, seen };
}

/** An answer with that status and JSON body. */
export function answer(status: number, body: object, headers: Record<string, string> = {}): Answer {
  return (_, response) => response.writeHead(status, headers).end(JSON.stringify(body));
}

/** An API server's refusal. */
export function refusal(
  code: number,
  reason: string,
  headers: Record<string, string> = {},
): Answer {
  return answer(
    code,
    { kind: "Status", status: "Failure", code, reason, message: `told ${reason}` },
    headers,
  );
}

/** Breaks the connection, without an answer or within its body. */
export function breakOff(body = ""): Answer {
  return (_, response) => {
    if (body === "") response.destroy();
    else response.writeHead(200).write(body, () => response.destroy());
  };
}

async function writeStandInKubeconfig(server: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kubeconfig-"));
  after(() => rm(folder, { recursive: true, force: true }));
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "a", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "a", user: {} }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a", namespace: "ours" } }],
    "current-context": "a",
  };
  const path = join(folder, "kubeconfig.json");
  await writeFile(path, JSON.stringify(content));
  return path;
}
