import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { imageNames } from "./image-builds.ts";
import { podNetworkConfiguration, runtimeConfiguration } from "./node-configuration.ts";
import type { Sandbox } from "./sandbox.ts";
import { untilReady } from "./until-ready.ts";

/** Starts containerd in the sandbox, with the images of the archives loaded; gives the path of its socket. */
export async function startContainerRuntime(
  sandbox: Sandbox,
  folder: string,
  archives: readonly string[],
): Promise<string> {
  const socket = join(folder, "containerd.sock");
  // Every file of this folder is taken for a network.
  const networkFolder = join(folder, "networks");
  await mkdir(networkFolder);
  await writeFile(join(networkFolder, "pods.conflist"), JSON.stringify(podNetworkConfiguration()));
  const configuration = join(folder, "containerd.toml");
  await writeFile(
    configuration,
    runtimeConfiguration({ socket, sandboxImage: imageNames.pause, networkFolder }),
  );
  const program = await sandbox.start(
    "containerd",
    ["--config", configuration],
    join(folder, "containerd.log"),
  );
  await untilReady("The container runtime", program, () => isListening(socket));
  for (const archive of archives) {
    await sandbox.run(
      "ctr",
      `--address=${socket}`,
      "--namespace=k8s.io",
      "images",
      "import",
      archive,
    );
  }
  return socket;
}

async function isListening(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    });
    connection.on("error", () => resolve(false));
  });
}
