import { execFile } from "node:child_process";
import { copyFile, glob, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import type { ControlPlane } from "./control-plane.ts";
import { findFreePort } from "../find-free-port.ts";
import { programPath } from "./programs.ts";
import { startProgram } from "./start-program.ts";
import { untilAnswering } from "./until-ready.ts";

export interface Kueue extends AsyncDisposable {
  /** The last lines it printed. */
  readonly lastLines: () => Promise<string>;
}

const exec = promisify(execFile);
const loopback = "127.0.0.1";
const namespace = "kueue-system";
const source = fileURLToPath(new URL("tools/kueue", import.meta.url));

/** Kueue does not start before it has put its certificate into these definitions. */
const converted = ["clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"];

/**
 * Starts Kueue's manager beside a control plane, with its definitions and without its webhooks:
 * Jobs have to be created suspended, and objects are not checked.
 */
export async function startKueue(controlPlane: ControlPlane): Promise<Kueue> {
  await installDefinitions(controlPlane);
  const folder = join(controlPlane.folder, "kueue");
  await mkdir(folder);
  // Nobody connects to the webhooks, but they are served: any certificate will do.
  for (const suffix of ["crt", "key"]) {
    await copyFile(join(controlPlane.folder, `apiserver.${suffix}`), join(folder, `tls.${suffix}`));
  }
  const healthPort = await findFreePort();
  const configuration = join(folder, "configuration.json");
  await writeFile(configuration, JSON.stringify(await managerConfiguration(folder, healthPort)));
  const program = await startProgram(
    await programPath("kueue"),
    [
      `--kubeconfig=${controlPlane.kubeconfig}`,
      `--config=${configuration}`,
      "--feature-gates=VisibilityOnDemand=false",
    ],
    join(folder, "kueue.log"),
  );
  await untilAnswering(`http://${loopback}:${healthPort}/readyz`, program);
  return { lastLines: program.lastLines, [Symbol.asyncDispose]: () => program.kill() };
}

async function managerConfiguration(certDir: string, healthPort: number): Promise<object> {
  return {
    apiVersion: "config.kueue.x-k8s.io/v1beta2",
    kind: "Configuration",
    health: { healthProbeBindAddress: `${loopback}:${healthPort}` },
    metrics: { bindAddress: "0" },
    webhook: { host: loopback, port: await findFreePort(), certDir },
    leaderElection: { leaderElect: false },
    integrations: { frameworks: ["batch/job"] },
  };
}

async function installDefinitions({ kubectl }: ControlPlane): Promise<void> {
  const { stdout } = await exec("go", ["mod", "download", "-json", "sigs.k8s.io/kueue"], {
    cwd: source,
  });
  const { Dir: folder } = z.object({ Dir: z.string() }).parse(JSON.parse(stdout));
  const files = await Array.fromAsync(glob(join(folder, "config/components/crd/bases/*.yaml")));
  await kubectl(["apply", "--server-side", ...files.map((file) => `--filename=${file}`)]);
  // A definition without any condition yet is an error to a wait for one of them.
  for (const sign of ["jsonpath={.status.conditions}", "condition=Established"]) {
    await kubectl(["wait", `--for=${sign}`, "crd", "--all", "--timeout=240s"]);
  }
  const clientConfig = { url: `https://${loopback}:1/convert` };
  const webhook = { clientConfig, conversionReviewVersions: ["v1"] };
  const patch = JSON.stringify({ spec: { conversion: { strategy: "Webhook", webhook } } });
  for (const plural of converted) {
    await kubectl(["patch", "crd", `${plural}.kueue.x-k8s.io`, "--type=merge", `-p=${patch}`]);
  }
  await kubectl(["create", "namespace", namespace]);
  await kubectl(["create", "secret", "generic", "kueue-webhook-server-cert", "-n", namespace]);
}
