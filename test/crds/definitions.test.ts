import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { type TestContext } from "node:test";
import { parse } from "yaml";
import { batchResourceStatus } from "../../src/contract/custom-resources/batch-resource.ts";
import { compressionJobStatus } from "../../src/contract/custom-resources/compression-job.ts";
import { conditionTypes, unseenConditions } from "../../src/contract/custom-resources/condition.ts";
import { isTerminal, jobStatus, transitionTable } from "../../src/contract/jobs/status.ts";
import {
  batches as batchType,
  type CompressionJobObject,
  compressionJobs as compressionJobType,
} from "../../src/resources/custom-resources.ts";
import type { KubernetesClient, MergePatch } from "../../src/kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../../src/kubernetes/kubernetes-error.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "../kubernetes/connect-test-cluster.ts";
import { makeSpec } from "../operator/batch/make-batch.ts";
import { largestStatus } from "./largest-status.ts";

const skip = clusterMissing;
const spec = {
  kind: "compress",
  model: { source: "https://models.test/a.onnx" },
  target: "cpu",
  dryRun: false,
  cancel: false,
  suspend: false,
} as const;

async function makeJob(
  client: KubernetesClient,
  name: string,
  fields: Partial<CompressionJobObject["spec"]> = {},
) {
  return client.create(compressionJobType, { metadata: { name }, spec: { ...spec, ...fields } });
}

/** What the API server says against it, a field a line. */
async function refusal(call: Promise<unknown>): Promise<string[]> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof KubernetesError && error.status === 422, String(error));
    // One of no field says that rules were not checked where the schema is broken already.
    const causes = error.causes.filter(({ field }) => field !== "<nil>");
    return causes.map(({ field, message }) => `${field}: ${message}`).toSorted();
  }
  return [];
}

const unseenStatus = { status: "Pending", conditions: [...unseenConditions] };

for (const file of ["compressionjobs", "batches"]) {
  test(`kubectl explain says what each field of ${file} is`, async () => {
    const text = await readFile(new URL(`../../crds/${file}.yaml`, import.meta.url), "utf8");
    const [version] = parse(text).spec.versions;
    const { metadata: _kubernetes, ...properties } = version.schema.openAPIV3Schema.properties;
    assert.deepEqual(listUndescribed({ properties }), []);
  });
}

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

function listUndescribed({ properties = {}, items = {} }: Schema): string[] {
  const fields = Object.entries(properties).flatMap(([name, schema]) => [
    ...(schema.description === undefined ? [name] : []),
    ...listUndescribed(schema).map((below) => `${name}.${below}`),
  ]);
  const hasItems = Object.keys(items).length > 0;
  return hasItems ? [...fields, ...listUndescribed(items)] : fields;
}

test("a resource that nobody has written a status for reads as Pending", { skip }, async () => {
  const { client } = await connectTestCluster();
  const made = await makeJob(client, "a");
  assert.deepEqual(made.status, unseenStatus);
  assert.deepEqual((await client.get(compressionJobType, "a")).status, unseenStatus);
  for await (const page of client.list(compressionJobType)) {
    assert.deepEqual(
      page.items.map(({ status }) => status),
      [unseenStatus],
    );
    const watched = client.watch(compressionJobType, {
      resourceVersion: "0",
      timeoutSeconds: 30,
      signal: AbortSignal.timeout(30_000),
    });
    for await (const event of watched) {
      assert.deepEqual("status" in event.object && event.object.status, unseenStatus);
      break;
    }
  }
  const batch = await client.create(batchType, { metadata: { name: "b" }, spec: makeSpec() });
  assert.deepEqual(batch.status, unseenStatus);
});

test("a status that comes with a new resource does not count", { skip }, async () => {
  const { client } = await connectTestCluster();
  const made = await client.create(compressionJobType, {
    metadata: { name: "a" },
    spec,
    status: { status: "Completed" },
  });
  assert.deepEqual(made.status, unseenStatus);
});

test("what is left out of a spec is filled in", { skip }, async () => {
  const { cluster, client } = await connectTestCluster();
  const resource = (kind: string, fields: object) =>
    JSON.stringify({
      apiVersion: "modeloptimization.dev/v1",
      kind,
      metadata: { name: "a" },
      spec: fields,
    });
  const { model, target } = spec;
  for (const text of [
    resource("CompressionJob", { model, target }),
    resource("Batch", { models: [model], targets: [target] }),
  ]) {
    await cluster.kubectl(["apply", "-n", client.namespace, "-f", "-"], text);
  }
  assert.deepEqual((await client.get(compressionJobType, "a")).spec, spec);
  const { kind, dryRun, cancel, suspend } = spec;
  assert.deepEqual((await client.get(batchType, "a")).spec, {
    kind,
    models: [model],
    targets: [target],
    dryRun,
    parallelism: 100,
    failFast: false,
    cancel,
    suspend,
  });
});

type SpecChange = MergePatch<CompressionJobObject["spec"]>;

const unchangeable =
  "cannot be changed: only cancel, suspend, ttlSecondsAfterFinished can; make a new CompressionJob";
const fixed = `Invalid value: ${unchangeable}`;
const changes: readonly [what: string, change: SpecChange, wrong: readonly string[]][] = [
  [
    "the target",
    { target: "cpu-int8" },
    [`spec.target: Invalid value: "cpu-int8": ${unchangeable}`],
  ],
  ["the kind", { kind: "quantize" }, [`spec.kind: Invalid value: "quantize": ${unchangeable}`]],
  ["the name", { name: "B" }, [`spec.name: Invalid value: "B": ${unchangeable}`]],
  [
    "the model's source",
    { model: { source: "https://models.test/b.onnx" } },
    [`spec.model: ${fixed}`],
  ],
  ["a field of the recipe", { recipe: { scheme: "int8-weight" } }, [`spec.recipe: ${fixed}`]],
  ["a recipe that is taken away", { recipe: null }, [`spec.recipe: ${fixed}`]],
  ["gates that are added", { gates: { minCosine: 0.9 } }, [`spec.gates: ${fixed}`]],
  ["a label that is added", { labels: { stage: "b" } }, [`spec.labels: ${fixed}`]],
  [
    "a deadline that is added and a name that is taken away",
    { deadlineSeconds: 5, name: null },
    [`spec.deadlineSeconds: ${fixed}`, `spec.name: ${fixed}`],
  ],
  ["suspend, there and back", { suspend: true }, []],
  ["the time to live", { ttlSecondsAfterFinished: 60 }, []],
  ["the time to live, taken away", { ttlSecondsAfterFinished: null }, []],
  ["cancel", { cancel: true }, []],
  [
    "cancel, taken back",
    { cancel: false },
    ["spec.cancel: Invalid value: false: cannot be taken back"],
  ],
  [
    "cancel, taken away",
    { cancel: null },
    ["spec.cancel: Invalid value: false: cannot be taken back"],
  ],
];

test("a spec cannot be changed apart from its controls", { skip }, async (t: TestContext) => {
  const { client } = await connectTestCluster();
  await makeJob(client, "a", { name: "A", recipe: { scheme: "fp16" }, labels: { team: "a" } });
  for (const [what, change, wrong] of changes) {
    await t.test(what, async () => {
      assert.deepEqual(
        await refusal(client.patch(compressionJobType, "a", { spec: change })),
        wrong,
      );
    });
  }
});

test(
  "a batch of the largest size can be cancelled and sped up, and nothing else of it changed",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    const models = Array.from({ length: 1_000 }, (_, i) => ({
      source: `https://models.test/${i}.onnx`.padEnd(1_300, "x"),
    }));
    await client.create(batchType, { metadata: { name: "a" }, spec: { ...makeSpec(), models } });
    await client.patch(batchType, "a", { spec: { cancel: true, parallelism: 2_000 } });
    assert.deepEqual(
      (await refusal(client.patch(batchType, "a", { spec: { parallelism: 2_001 } }))).length,
      1,
    );
    const [wrong] = await refusal(
      client.patch(batchType, "a", { spec: { models: models.toReversed() } }),
    );
    assert.match(wrong ?? "", /^spec\.models: Invalid value: cannot be changed/);
  },
);

test(
  "a name that leaves no room for the names of a batch's jobs is refused",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    const create = (length: number) =>
      client.create(batchType, { metadata: { name: "b".repeat(length) }, spec: makeSpec() });
    assert.deepEqual(await refusal(create(248)), []);
    assert.match(
      (await refusal(create(249)))[0] ?? "",
      /^metadata\.name: Too long: may not be more than 248 bytes/,
    );
  },
);

test("the API server holds jobs to the order of their statuses", { skip }, async (t) => {
  const { client } = await connectTestCluster();
  const later = (from: (typeof jobStatus.options)[number]): Set<string> => {
    const next = [...transitionTable.compress[from], ...transitionTable.quantize[from]];
    const onward = next.filter((status) => status !== "Pending");
    return new Set([from, ...next, ...onward.flatMap((status) => [...later(status)])]);
  };
  for (const from of jobStatus.options) {
    await t.test(`from ${from}`, async () => {
      const name = from.toLowerCase();
      await makeJob(client, name);
      await client.patch(
        compressionJobType,
        name,
        { status: { status: from } },
        { subresource: "status" },
      );
      const { metadata } = await client.get(compressionJobType, name);
      for (const to of jobStatus.options.toReversed()) {
        // Only one that is refused leaves the job as it is.
        if (later(from).has(to)) continue;
        const [wrong] = await refusal(
          client.patch(
            compressionJobType,
            name,
            { status: { status: to } },
            { subresource: "status" },
          ),
        );
        assert.match(
          wrong ?? "",
          /^status\.status: .*a job goes back only to Pending, and Completed, Failed and Cancelled are final$/,
        );
      }
      const { metadata: after } = await client.get(compressionJobType, name);
      assert.equal(after.resourceVersion, metadata.resourceVersion);
      const [next] = [...later(from)].toReversed();
      assert.ok(
        next === from
          ? isTerminal(from)
          : await client.patch(
              compressionJobType,
              name,
              { status: { status: jobStatus.parse(next) } },
              { subresource: "status" },
            ),
      );
    });
  }
});

test("a batch that has ended stays so", { skip }, async () => {
  const { client } = await connectTestCluster();
  await client.create(batchType, { metadata: { name: "a" }, spec: makeSpec() });
  const write = (status: "Running" | "Cancelled") =>
    client.patch(batchType, "a", { status: { status } }, { subresource: "status" });
  await write("Cancelled");
  assert.match(
    (await refusal(write("Running")))[0] ?? "",
    /^status\.status: .*Completed, Failed and Cancelled are final$/,
  );
});

test("conditions are merged by their type", { skip }, async () => {
  const { client, cluster } = await connectTestCluster();
  const { apiVersion, kind } = compressionJobType;
  const { namespace } = client;
  await makeJob(client, "a");
  for (const type of [conditionTypes.scheduled, conditionTypes.finished]) {
    const condition = {
      type,
      status: "True",
      reason: "Seen",
      message: "",
      lastTransitionTime: "2026-03-01T00:00:00Z",
    };
    const status = { status: "Pending", conditions: [condition] };
    const object = { apiVersion, kind, metadata: { name: "a", namespace }, status };
    await cluster.kubectl(
      ["apply", "--server-side", `--field-manager=${type}`, "--subresource=status", "-f", "-"],
      JSON.stringify(object),
    );
  }
  const { status } = await client.get(compressionJobType, "a");
  assert.deepEqual(
    status?.conditions?.map(({ type }) => type),
    ["Ready", "Scheduled", "Finished"],
  );
});

test("the API server takes the largest statuses, and refuses more", { skip }, async () => {
  const { client } = await connectTestCluster();
  await makeJob(client, "a");
  const status = compressionJobStatus.parse(await largestStatus("compressionjobs"));
  await client.patch(compressionJobType, "a", { status }, { subresource: "status" });
  const stored = await client.get(compressionJobType, "a");
  assert.deepEqual(stored.status, status);
  const { artifacts = [] } = status.report ?? {};
  const report = { ...status.report, artifacts: [...artifacts, ...artifacts] };
  const longer = { status: { ...status, statusMessage: `${status.statusMessage}.`, report } };
  assert.deepEqual(
    (await refusal(client.patch(compressionJobType, "a", longer, { subresource: "status" }))).map(
      (line) => line.split(": ")[0],
    ),
    ["status.report.artifacts", "status.statusMessage"],
  );
  await client.create(batchType, { metadata: { name: "b" }, spec: makeSpec() });
  const batchStatus = batchResourceStatus.parse(await largestStatus("batches"));
  await client.patch(batchType, "b", { status: batchStatus }, { subresource: "status" });
  assert.deepEqual((await client.get(batchType, "b")).status, batchStatus);
});

test("kubectl shows, selects, groups and explains the resources", { skip }, async () => {
  const { client, cluster } = await connectTestCluster();
  const kubectl = (...args: string[]) => cluster.kubectl([...args, "-n", client.namespace]);
  await makeJob(client, "a");
  await makeJob(client, "b", { target: "gpu", kind: "quantize" });
  const status = {
    jobId: `job-${"0".repeat(26)}`,
    status: "Optimizing",
    report: { progress: "42%", ratio: "0.27" },
    statusMessage: "Quantizes",
  } as const;
  await client.patch(compressionJobType, "b", { status }, { subresource: "status" });
  assert.match(
    await kubectl("get", "cpj"),
    /^NAME +STATUS +TARGET +RATIO +AGE\na +Pending +cpu .*\nb +Optimizing +gpu +0\.27 +\d+s\n$/,
  );
  assert.match(
    await kubectl("get", "cpj", "-o", "wide"),
    /RATIO +AGE +JOB +MESSAGE\n(.*\n)b .* job-0{26} +Quantizes\n$/,
  );
  for (const selector of [
    "spec.target=gpu",
    "spec.kind=quantize",
    "status.status=Optimizing",
    "status.status!=Pending",
  ]) {
    assert.equal(
      await kubectl("get", "cpj", "--field-selector", selector, "-o", "name"),
      "compressionjob.modeloptimization.dev/b\n",
    );
  }
  // Pending is a default: selectable although it is stored nowhere.
  assert.match(
    await kubectl("get", "cpj", "--field-selector", "status.status=Pending", "-o", "name"),
    /\/a\n$/,
  );
  await client.create(batchType, { metadata: { name: "c" }, spec: makeSpec() });
  assert.deepEqual((await kubectl("get", "modeloptimization", "-o", "name")).split("\n"), [
    "batch.modeloptimization.dev/c",
    "compressionjob.modeloptimization.dev/a",
    "compressionjob.modeloptimization.dev/b",
    "",
  ]);
  assert.match(
    await kubectl("explain", "cpj.spec.recipe.scheme"),
    /weights and activations in int8/,
  );
  assert.match(await kubectl("explain", "cbatch.status.marks"), /A letter for each job/);
});

test(
  "the definitions fit kubectl apply, which keeps a copy in an annotation",
  { skip },
  async () => {
    const { cluster } = await connectTestCluster();
    for (const plural of ["batches", "compressionjobs"]) {
      const path = `crds/${plural}.yaml`;
      const copy = JSON.stringify(parse(await readFile(path, "utf8")));
      assert.ok(copy.length < 60_000);
      await cluster.kubectl(["apply", "--dry-run=server", "-f", path]);
    }
  },
);
