import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Cluster } from "../../test/support/cluster/cluster.ts";
import { findFreePort } from "../../test/support/find-free-port.ts";
import { startTcpRelay } from "../../test/support/tcp-relay.ts";
import type { ConnectedProgram } from "./break-program.ts";
import type { ProgramName } from "./plan-faults.ts";
import { superviseProgram } from "./supervise-program.ts";

const exec = promisify(execFile);
const loopback = "127.0.0.1";
const greetings: Readonly<Record<ProgramName, string>> = {
  operator: "Leading",
  service: "Listening",
};
const mains: Readonly<Record<ProgramName, string>> = {
  operator: fileURLToPath(new URL("../../operator/main.ts", import.meta.url)),
  service: fileURLToPath(new URL("../../src/service/main.ts", import.meta.url)),
};

interface StartOptions {
  readonly cluster: Cluster;
  readonly namespace: string;
  /** For the service's data, and what the programs print. */
  readonly directory: string;
}

export interface StartedPrograms extends Readonly<Record<ProgramName, ConnectedProgram>> {
  readonly serviceUrl: string;
  /** A new access token of the service. */
  readonly createToken: () => Promise<string>;
  readonly end: () => Promise<void>;
}

/** Starts operator and service, each with a network of its own. */
export async function startPrograms(options: StartOptions): Promise<StartedPrograms> {
  const { namespace, directory } = options;
  const port = await findFreePort();
  const serviceUrl = `http://${loopback}:${port}`;
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    MOS_NAMESPACE: namespace,
    MOS_SERVICE_URL: serviceUrl,
    MOS_WORKER_IMAGE: "worker",
    MOS_HEALTH_PORT: "0",
    // As a container that is started again in its pod.
    MOS_POD_NAME: "operator-0",
    MOS_EXECUTOR: "cluster",
    MOS_DATA_DIR: directory,
    MOS_PORT: String(port),
  };
  const createToken = async () => {
    const args = [mains.service, "token", "create", "--name", namespace, "--scopes", "admin"];
    return (await exec(process.execPath, args, { env: environment })).stdout.trim();
  };
  const operator = await startConnected("operator", options, environment);
  const service = await startConnected("service", options, environment);
  const end = async () => {
    for (const { program, relay } of [operator, service]) {
      await program.end();
      await relay[Symbol.asyncDispose]();
    }
  };
  return { operator, service, serviceUrl, createToken, end };
}

async function startConnected(
  name: ProgramName,
  { cluster, directory }: StartOptions,
  environment: Readonly<Record<string, string>>,
): Promise<ConnectedProgram> {
  const relay = await startTcpRelay(cluster.url);
  const kubeconfig = join(directory, `${name}.json`);
  const content = await readFile(cluster.kubeconfig, "utf8");
  await writeFile(kubeconfig, content.replace(cluster.url, `https://${loopback}:${relay.port}`));
  const program = superviseProgram({
    args: [mains[name]],
    env: { ...environment, KUBECONFIG: kubeconfig },
    greeting: greetings[name],
    logFile: join(directory, `${name}.log`),
  });
  return { program, relay };
}
