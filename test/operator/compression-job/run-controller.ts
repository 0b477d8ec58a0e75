import { createCompressionJobController } from "../../../operator/controllers/compression-job/compression-job-controller.ts";
import { type Clock, systemClock } from "../../../src/controller-runtime/clock.ts";
import { startController } from "../../../src/controller-runtime/start-controller.ts";
import { watchOperatorResources } from "../../../operator/run-operator.ts";
import { connectCluster } from "../../../src/kubernetes/connect-cluster.ts";
import { jobSettings, targets } from "./make-job.ts";

export interface RunningController extends AsyncDisposable {
  /** Ends it as a crash does: nothing that it has started continues. */
  crash(): Promise<void>;
}

/** The controller of CompressionJobs in this process, without the election of a leader. */
export async function runController(
  kubeconfig: string,
  namespace: string,
  clock: Clock = systemClock,
): Promise<RunningController> {
  const client = await connectCluster({ kubeconfig }, { namespace });
  const log = () => {};
  const watched = watchOperatorResources([client], log);
  await Promise.all(Object.values(watched).map(({ synced }) => synced));
  const events = { record() {}, close: async () => {} };
  const settings = { ...jobSettings, serviceAccount: "default" };
  const controller = createCompressionJobController({
    client,
    scopes: [client],
    events,
    clock,
    ...watched,
    targets,
    settings,
  });
  const running = startController(controller, { clock, log });
  const crash = async () => {
    await client.close();
    await running.stop();
    await Promise.all(Object.values(watched).map((resource) => resource.stop()));
  };
  return { crash, [Symbol.asyncDispose]: crash };
}
