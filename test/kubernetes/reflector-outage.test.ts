import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterCall } from "../../src/kubernetes/transport.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { startControlPlane } from "../support/cluster/control-plane.ts";
import { secrets } from "../support/cluster/test-resources.ts";
import { connect, mountServiceAccount } from "./connect-test-cluster.ts";
import { observeSecrets, secret } from "./observe-secrets.ts";
import { startTcpRelay } from "../support/tcp-relay.ts";

test(
  "a reflector outlives the API server and learns what was deleted meanwhile",
  { skip: clusterMissing },
  async () => {
    await using controlPlane = await startControlPlane();
    await using relay = await startTcpRelay(controlPlane.url);
    const calls: ClusterCall[] = [];
    const onCall = (call: ClusterCall) => void calls.push(call);
    const direct = await connect({ kubeconfig: controlPlane.kubeconfig });
    const client = await connect(await mountServiceAccount(controlPlane, relay.port), { onCall });
    for (const name of ["kept", "deleted", "replaced"]) await direct.create(secrets, secret(name));
    const { reflector, events, untilEvent } = observeSecrets(client);
    await reflector.synced;

    await controlPlane.restartApiServer();
    await direct.create(secrets, secret("after-restart"));
    await untilEvent("added after-restart");
    const countLists = () => calls.filter(({ verb }) => verb === "list").length;
    // Where anything else was written before the restart, the first one has made another.
    const listsBefore = countLists();

    relay.interrupt();
    for (const name of ["deleted", "replaced"])
      await direct.delete(secrets, name, { propagationPolicy: "Background" });
    await direct.create(secrets, secret("replaced"));
    // A new server remembers no changes from before its start, so that the reflector must list anew.
    await controlPlane.restartApiServer();
    relay.restore();
    await untilEvent("deleted deleted");
    await untilEvent("added replaced", 2);

    assert.deepEqual(events.filter((event) => event !== "error").slice(3), [
      "added after-restart",
      "deleted replaced",
      "added replaced",
      "deleted deleted",
    ]);
    assert.deepEqual([...reflector.values()].map(({ metadata }) => metadata.name).toSorted(), [
      "after-restart",
      "kept",
      "replaced",
    ]);
    assert.equal(countLists(), listsBefore + 1);
  },
);
