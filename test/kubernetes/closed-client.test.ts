import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";
import { createReflector } from "../../src/kubernetes/reflector.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { secrets } from "../support/cluster/test-resources.ts";
import { connectTestCluster } from "./connect-test-cluster.ts";

const moments = Array.from({ length: 60 }, (_, i) => i / 3);

test(
  "a client can be closed as soon as its calls are given up, at any moment",
  { skip: clusterMissing },
  async () => {
    const { cluster, client } = await connectTestCluster();
    const { namespace } = client;
    for (const ms of moments) {
      const closed = await connectCluster({ kubeconfig: cluster.kubeconfig }, { namespace });
      const stop = new AbortController();
      const { signal } = stop;
      const write = () => closed.patch(secrets, "none", { stringData: { a: "b" } }, { signal });
      const read = () => closed.get(resources.pods, "none", { signal });
      const ended = Promise.allSettled([write(), write(), read(), read()]);
      const reflector = createReflector({ client: closed, type: secrets, onError: () => {} });
      await delay(ms);
      stop.abort();
      await Promise.all([reflector.stop(), ended]);
      await closed.close();
    }
  },
);
