import assert from "node:assert/strict";
import test from "node:test";
import { createClient } from "../../../src/client/create-client.ts";
import { routes } from "../../../src/contract/routes/routes.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { startClusterService } from "./cluster-service.ts";
import { until } from "../../support/until.ts";

const body = { model: { source: "https://models.example/detector.onnx" }, target: "cpu" };
const account = "ci";

test(
  "a ServiceAccount may do over REST what Kubernetes lets it do to the resources",
  { skip: clusterMissing },
  async (t) => {
    const { cluster, namespace: own } = await createTestNamespace();
    const { namespace: team } = await createTestNamespace();
    const settings = { MOS_NAMESPACES: team, MOS_SERVICE_ACCOUNT_CALLERS: "true" };
    const service = await startClusterService(t, { cluster, namespace: own, settings });
    const kubectl = (...args: readonly string[]) => cluster.kubectl([...args, "-n", team]);
    const createToken = async (audience: string) =>
      (await kubectl("create", "token", account, `--audience=${audience}`)).trim();
    const { baseUrl } = service;
    await kubectl("create", "serviceaccount", account);
    const client = createClient({
      routes,
      baseUrl,
      token: await createToken("model-optimization"),
    });
    const bind = (name: string, ...verbs: readonly string[]) =>
      kubectl(
        "create",
        "role",
        name,
        `--verb=${verbs.join(",")}`,
        "--resource=compressionjobs.modeloptimization.dev,batches.modeloptimization.dev",
      ).then(() =>
        kubectl(
          "create",
          "rolebinding",
          name,
          `--role=${name}`,
          `--serviceaccount=${team}:${account}`,
        ),
      );
    const list = () => client.call("listJobs", {});

    await assert.rejects(list(), /may not list compressionjobs/);
    await bind("reader", "get", "list");
    await until("the binding counts", () => list().catch(() => undefined));
    await assert.rejects(client.call("startCompression", { body }), /may not create/);
    await bind("writer", "create");
    const { id } = await until("the binding counts", () =>
      client.call("startCompression", { body }).catch(() => undefined),
    );
    await kubectl("wait", "--for=create", `cpj/${id}`, "--timeout=240s");
    const job = await client.call("getJob", { params: { id } });
    assert.equal(job.createdBy?.name, `system:serviceaccount:${team}:${account}`);
    await assert.rejects(client.call("cancelJob", { params: { id } }), /missing_scope/);
    await assert.rejects(client.call("listTokens", {}), /needs an access token/);
    const elsewhere = await service.client.call("startCompression", { body });
    await assert.rejects(client.call("getJob", { params: { id: elsewhere.id } }), /not_found/);

    await kubectl("delete", "rolebinding", "reader");
    const refusal = await until("the cached answer has expired", () =>
      list().then(
        () => undefined,
        (error: unknown) => String(error),
      ),
    );
    assert.match(refusal, /missing_scope/);

    const strangers = [
      await createToken("https://kubernetes.default.svc"),
      await createToken("model-optimization-worker"),
      (await cluster.kubectl(["create", "token", "default", "-n", "kube-system"])).trim(),
      cluster.adminToken,
    ];
    for (const token of strangers) {
      await assert.rejects(
        createClient({ routes, baseUrl, token }).call("listJobs", {}),
        /unauthorized/,
      );
    }

    const once = { body, headers: { "idempotency-key": "once" } };
    const first = await client.call("startCompression", once);
    assert.equal((await client.call("startCompression", once)).id, first.id);
    await kubectl("delete", "serviceaccount", account);
    await kubectl("create", "serviceaccount", account);
    const renewed = await createToken("model-optimization");
    const other = createClient({ routes, baseUrl, token: renewed });
    const second = await until("the account that was made again is known", () =>
      other.call("startCompression", once).catch(() => undefined),
    );
    assert.notEqual(second.id, first.id, "the account before had the key");
  },
);
