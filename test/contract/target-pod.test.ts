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
  [
    "a mount of the operator's volume",
    { volumeMounts: [{ name: "token", mountPath: "/disk" }] },
    /must not be work or token.*\n.*volumeMounts\[0\]\.name/,
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
  ["a label of the operator", { labels: { "modeloptimization.dev/job-id": "a" } }, /pod\.labels/],
  ["an annotation of Kueue", { annotations: { "kueue.x-k8s.io/x": "a" } }, /pod\.annotations/],
  ["a security context", { securityContext: { runAsUser: 0 } }, /securityContext/],
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
