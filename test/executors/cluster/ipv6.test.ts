import assert from "node:assert/strict";
import test from "node:test";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { connect, mountServiceAccount } from "../../kubernetes/connect-test-cluster.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { startControlPlane } from "../../support/cluster/control-plane.ts";
import { ipv6Missing } from "../../support/ipv6-missing.ts";
import { realModel } from "../../support/real-models.ts";
import { startInstallation } from "./installation.ts";
import { printedLines } from "./printed-lines.ts";

const skip = clusterMissing || ipv6Missing;
const address = "::1";
const recipe = { evaluation: { level: "none" } } as const;

test(
  "jobs run where API server, service and node have only IPv6 addresses",
  { skip },
  async (t) => {
    await using used = new AsyncDisposableStack();
    const owner = { after: (work: () => unknown) => used.defer(async () => void (await work())) };
    const plane = used.use(await startControlPlane({ address }));
    const settings = { MOS_HOST: address };
    const { service, node } = await startInstallation(owner, plane, { settings });
    const { client, baseUrl } = service;
    assert.match(baseUrl, /^http:\/\/\[::1\]:/);
    const { source } = await client.uploadModel(realModel("ocr-orientation"));

    await t.test("a worker reports to the service", async () => {
      const body = { model: { source }, target: "cpu", recipe };
      const { id } = await client.call("startCompression", { body });
      const lines = await Array.fromAsync(client.followLogs(id), ({ text }) => text);
      const { status, error } = await client.call("getJob", { params: { id } });
      assert.equal(status, "Completed", error?.message);
      assert.deepEqual([lines], node.jobOutputs(id).map(printedLines));
    });

    await t.test("a pod finds the API server by its environment", async () => {
      const mounted = await mountServiceAccount(plane);
      const inPod = await connect({ ...mounted, host: address }, { namespace: service.namespace });
      const [page] = await Array.fromAsync(inPod.list(compressionJobs));
      assert.equal(page?.items.length, 1);
    });
  },
);
