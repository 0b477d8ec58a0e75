import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { configuredTarget } from "../../src/contract/custom-resources/target-pod.ts";
import { fullTarget } from "../support/full-target.ts";

const volume = { name: "data", emptyDir: {} };

const refused: readonly (readonly [string, object, RegExp])[] = [
  ["the path of a node", { volumes: [{ name: "a", hostPath: { path: "/" } }] }, /hostPath/],
  ["a volume of the operator", { volumes: [{ ...volume, name: "work" }] }, /volumes\[0\]\.name/],
  ["a volume of no kind", { volumes: [{ name: "a" }] }, /exactly one of configMap, secret/],
  [
    "a volume of two kinds",
    { volumes: [{ ...volume, configMap: { name: "a" } }] },
    /exactly one of.*\n.*volumes\[0\]/,
  ],
  ["a volume twice", { volumes: [volume, volume] }, /twice\n.*pod\.volumes/],
  [
    "a mount of no volume of the target",
    { volumes: [volume], volumeMounts: [{ name: "disk", mountPath: "/disk" }] },
    /one of the target's volumes: data\n.*volumeMounts\[0\]\.name/,
  ],
  [
    "a mount over the worker's folder",
    { volumes: [volume], volumeMounts: [{ name: "data", mountPath: "/work/" }] },
    /volumeMounts\[0\]\.mountPath/,
  ],
  [
    "a mount over the worker's token",
    { volumes: [volume], volumeMounts: [{ name: "data", mountPath: "/var/run" }] },
    /volumeMounts\[0\]\.mountPath/,
  ],
  ["a variable of the operator", { env: [{ name: "MOS_JOB_ID", value: "a" }] }, /env\[0\]\.name/],
  ["a variable without a value", { env: [{ name: "A" }] }, /exactly one of value, valueFrom/],
  [
    "a variable of no source",
    { env: [{ name: "A", valueFrom: {} }] },
    /exactly one of secretKeyRef.*\n.*env\[0\]\.valueFrom/,
  ],
  ["a label of the operator", { labels: { "modeloptimization.dev/job-id": "a" } }, /pod\.labels/],
  ["an annotation of Kueue", { annotations: { "kueue.x-k8s.io/x": "a" } }, /pod\.annotations/],
  ["a label's value with a space", { labels: { team: "a b" } }, /pod\.labels/],
  ["a security context", { securityContext: { runAsUser: 0 } }, /securityContext/],
  ["an affinity to nothing", { affinity: { zone: "a" } }, /zone/],
  [
    "a claim of two sources",
    { resourceClaims: [{ name: "a", resourceClaimName: "b", resourceClaimTemplateName: "c" }] },
    /exactly one of resourceClaimTemplateName/,
  ],
];

test("a target's queue needs a name that Kueue takes", () => {
  const parse = (queue: object) => configuredTarget.safeParse({ ...fullTarget, queue });
  assert.equal(parse({ name: "gpus", priorityClass: "low" }).success, true);
  const refusals = [{}, { name: "GPUs" }, { name: "gpus", priority: 10 }];
  const texts = refusals.map((queue) => z.prettifyError(parse(queue).error ?? new z.ZodError([])));
  for (const text of texts) assert.match(text, /queue/);
});

for (const [name, pod, message] of refused) {
  test(`a target's pods refuse ${name}`, () => {
    const { error } = configuredTarget.safeParse({ ...fullTarget, pod });
    assert.ok(error);
    assert.match(z.prettifyError(error), message);
  });
}
