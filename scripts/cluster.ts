import { once } from "node:events";
import { parseArgs } from "node:util";
import { startControlPlane, type ControlPlane } from "../test/support/cluster/control-plane.ts";
import { imageNames } from "../test/support/cluster/image-builds.ts";
import { startKwok } from "../test/support/cluster/kwok.ts";
import { podEndStage } from "../test/support/cluster/pod-end-stage.ts";
import { prepareRequirement } from "../test/support/cluster/prepare-requirement.ts";
import { programPath } from "../test/support/cluster/programs.ts";
import { requirements } from "../test/support/cluster/requirements.ts";
import { startCluster } from "../test/support/cluster/start-cluster.ts";

const simulatedNodes = 4;

/** A cluster with this project's kinds and images on one real node, until Ctrl-C. */
async function startRealCluster(): Promise<ControlPlane> {
  await prepareRequirement(requirements.nodeMissing);
  const cluster = await startCluster({ images: ["service", "worker"] });
  process.stdout.write(
    `Images: ${imageNames.service}, ${imageNames.worker} (imagePullPolicy: Never)\n`,
  );
  process.stdout.write(
    `Pods reach this machine at ${cluster.hostAddress}; NodePorts answer at ${cluster.nodeAddress}\n`,
  );
  return cluster;
}

/** A cluster whose nodes are simulated: pods of Jobs run for two to five seconds, do nothing and succeed. */
async function startSimulatedCluster(): Promise<ControlPlane> {
  await prepareRequirement(requirements.clusterMissing);
  const controlPlane = await startControlPlane();
  await startKwok(controlPlane, {
    nodes: simulatedNodes,
    endStages: [podEndStage({ delayMs: 2_000, maxDelayMs: 5_000 })],
  });
  return controlPlane;
}

const { values } = parseArgs({ options: { simulated: { type: "boolean", default: false } } });
const stopRequest = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
// Keeps the process, which waits for nothing but a signal.
const keptAlive = setInterval(() => {}, 60_000);
await using cluster = await (values.simulated ? startSimulatedCluster() : startRealCluster());
process.stdout.write(
  `\n  export KUBECONFIG=${cluster.kubeconfig}\n  ${await programPath("kubectl")} get nodes\n\n`,
);
process.stdout.write("Ctrl-C stops the cluster and leaves nothing behind\n");
await stopRequest;
clearInterval(keptAlive);
