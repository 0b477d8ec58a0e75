import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** What a kubelet has of a pod's log: nothing, or lines with their times; silent, no answer. */
export type PodLog = "silent" | readonly string[] | undefined;

export interface LogServer extends Disposable {
  readonly port: number;
}

/** Answers for the kubelets of all simulated nodes. */
export async function serveLogs(
  { folder }: { readonly folder: string },
  findLog: (pod: string) => PodLog,
): Promise<LogServer> {
  const read = (name: string) => readFile(join(folder, name));
  const [key, cert] = await Promise.all([read("apiserver.key"), read("apiserver.crt")]);
  const server = createServer({ key, cert }, (request, answer) => {
    const [, kind, , pod = ""] = (request.url ?? "").split(/[/?]/);
    const log = kind === "containerLogs" ? findLog(pod) : undefined;
    if (log === "silent") return;
    if (log === undefined) answer.writeHead(404).end();
    else answer.end(log.join(""));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.dispose]: () => server.close().closeAllConnections() };
}
