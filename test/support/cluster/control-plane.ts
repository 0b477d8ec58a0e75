import { generateKeyPairSync, randomBytes } from "node:crypto";
import { glob, rm, writeFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openCluster, writeKubeconfig, type Cluster } from "./cluster.ts";
import { findFreePort } from "../find-free-port.ts";
import { programPath, type Program } from "./programs.ts";
import { createRunFolder } from "./run-folder.ts";
import { startProgram, type RunningProgram } from "./start-program.ts";
import { untilAnswering } from "./until-ready.ts";

export interface ControlPlaneOptions {
  /** Lifts the control plane's own client limits, which bound the rate of Jobs otherwise. */
  readonly loadRun?: boolean;
  /** Where the API server listens: loopback, or an address that a node reaches. */
  readonly address?: string;
  /** Of the run; a new one by default. */
  readonly folder?: string;
  /** Calls of this namespace's service accounts are recorded in `audit.log` of the folder. */
  readonly auditedNamespace?: string | undefined;
}

/** A control plane that belongs to its caller. It also ends with this process, however that ends. */
export interface ControlPlane extends Cluster, AsyncDisposable {
  /** Where the API server listens. */
  readonly address: string;
  /** Holds everything of the run: certificates, data, logs. */
  readonly folder: string;
  readonly stopApiServer: () => Promise<void>;
  /** On the same port as before. */
  readonly startApiServer: () => Promise<void>;
  readonly restartApiServer: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const loopback = "127.0.0.1";
const loopbacks = [loopback, "::1"];
const loadLimits = ["--kube-api-qps=1000", "--kube-api-burst=1000"];
const resourceDefinitions = fileURLToPath(new URL("../../../crds/*.yaml", import.meta.url));

/** Starts etcd, API server, controller manager and scheduler on free ports, with this project's kinds installed. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { folder = await createRunFolder(), auditedNamespace } = options;
  const running: RunningProgram[] = [];
  const stop = async () => {
    await Promise.all(running.map((program) => program.kill()));
    await rm(folder, { recursive: true, force: true });
  };
  const start = async (name: Program, args: readonly string[]) => {
    const program = await startProgram(await programPath(name), args, join(folder, `${name}.log`));
    running.push(program);
    return program;
  };
  try {
    const token = randomBytes(16).toString("hex");
    await writeFile(join(folder, "tokens.csv"), `${token},admin,admin,system:masters\n`);
    await writeFile(join(folder, "service-accounts.pem"), serviceAccountKey());
    const etcdUrl = `http://${loopback}:${await findFreePort()}`;
    const etcd = await start("etcd", etcdFlags(folder, etcdUrl));
    // An API server that finds no etcd tries again only after a second.
    await untilAnswering(`${etcdUrl}/health`, etcd);

    const address = options.address ?? loopback;
    const port = await findFreePort(address);
    const url = `https://${isIPv6(address) ? `[${address}]` : address}:${port}`;
    const auditing = await auditFlags(folder, auditedNamespace);
    const flags = [...apiServerFlags({ folder, etcdUrl, address, port }), ...auditing];
    let apiServer = await start("kube-apiserver", flags);
    await untilAnswering(`${url}/readyz`, apiServer);
    const cluster = await openCluster(await writeKubeconfig({ folder, url, token }));

    await start("kube-controller-manager", [
      ...clientFlags(cluster.kubeconfig, options),
      `--service-account-private-key-file=${join(folder, "service-accounts.pem")}`,
      `--root-ca-file=${join(folder, "apiserver.crt")}`,
      "--use-service-account-credentials=true",
      // At the start it makes an account and a token for every controller, which its usual limit stretches to seconds.
      ...(options.loadRun ? ["--concurrent-job-syncs=20"] : ["--kube-api-burst=200"]),
    ]);
    await start("kube-scheduler", clientFlags(cluster.kubeconfig, options));
    await installResourceDefinitions(cluster);
    // Pods are admitted only once their service account exists: the controller manager's first sign of life.
    await cluster.kubectl(["wait", "--for=create", "serviceaccount/default", "--timeout=240s"]);

    const stopApiServer = () => apiServer.kill();
    const startApiServer = async () => {
      apiServer = await start("kube-apiserver", flags);
      await untilAnswering(`${url}/readyz`, apiServer);
    };
    const restartApiServer = async () => {
      await stopApiServer();
      await startApiServer();
    };
    return {
      ...cluster,
      address,
      folder,
      stopApiServer,
      startApiServer,
      restartApiServer,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function etcdFlags(folder: string, url: string): string[] {
  const peer = `http://${loopback}:0`;
  return formatFlags({
    "data-dir": join(folder, "etcd"),
    "listen-client-urls": url,
    "advertise-client-urls": url,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
    "unsafe-no-fsync": true,
  });
}

interface ApiServer {
  readonly folder: string;
  readonly etcdUrl: string;
  readonly address: string;
  readonly port: number;
}

function apiServerFlags({ folder, etcdUrl, address, port }: ApiServer): string[] {
  return formatFlags({
    "etcd-servers": etcdUrl,
    "bind-address": address,
    "advertise-address": address,
    "secure-port": port,
    // It makes its own certificate there.
    "cert-dir": folder,
    "service-account-key-file": join(folder, "service-accounts.pem"),
    "service-account-signing-key-file": join(folder, "service-accounts.pem"),
    "service-account-issuer": "https://kubernetes.default.svc",
    "authorization-mode": "RBAC",
    "token-auth-file": join(folder, "tokens.csv"),
    "service-cluster-ip-range": isIPv6(address) ? "fd00:10::/108" : "10.0.0.0/24",
    "allow-privileged": true,
    "kubelet-preferred-address-types": "InternalIP",
    // No pod could reach an API server on loopback, and its address is refused as an endpoint.
    ...(loopbacks.includes(address) && { "endpoint-reconciler-type": "none" }),
  });
}

async function auditFlags(folder: string, namespace: string | undefined): Promise<string[]> {
  if (namespace === undefined) return [];
  const policy = join(folder, "audit-policy.json");
  const rules = [
    { level: "Metadata", userGroups: [`system:serviceaccounts:${namespace}`] },
    { level: "None" },
  ];
  const content = { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules };
  await writeFile(policy, JSON.stringify({ ...content, omitStages: ["RequestReceived"] }));
  return formatFlags({ "audit-policy-file": policy, "audit-log-path": join(folder, "audit.log") });
}

function formatFlags(values: Readonly<Record<string, string | number | boolean>>): string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

function clientFlags(kubeconfig: string, { loadRun }: ControlPlaneOptions): string[] {
  const files = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
  const flags = files.map((name) => `--${name}=${kubeconfig}`);
  return [...flags, "--leader-elect=false", "--secure-port=0", ...(loadRun ? loadLimits : [])];
}

async function installResourceDefinitions(cluster: Cluster): Promise<void> {
  const files = await Array.fromAsync(glob(resourceDefinitions));
  if (files.length === 0) return;
  const named = files.map((file) => `--filename=${file}`);
  await cluster.kubectl(["apply", "--server-side", ...named]);
  // A definition without any condition yet is an error to a wait for one of them.
  for (const sign of ["jsonpath={.status.conditions}", "condition=Established"]) {
    await cluster.kubectl(["wait", `--for=${sign}`, ...named, "--timeout=240s"]);
  }
}

function serviceAccountKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}
