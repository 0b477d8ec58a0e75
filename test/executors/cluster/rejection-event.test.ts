import assert from "node:assert/strict";
import test from "node:test";
import { rejectionEvent } from "../../../src/executors/cluster/rejection-event.ts";
import { responseError } from "../../../src/kubernetes/kubernetes-error.ts";

const forbidden = 'compressionjobs.modeloptimization.dev "job-1" is forbidden: ';
const byPolicy = `${forbidden}ValidatingAdmissionPolicy 'gpus' with binding 'gpus' denied request: no GPUs`;

const final: readonly (readonly [status: number, words: string])[] = [
  [422, 'CompressionJob "job-1" is invalid: spec.model: Required value'],
  [422, byPolicy],
  [403, byPolicy],
  [403, 'admission webhook "gatekeeper.sh" denied the request: [gpus] no GPUs'],
  [400, 'admission webhook "kyverno.svc" denied the request: no GPUs'],
];

const passing: readonly (readonly [status: number, words: string])[] = [
  [429, "the server has received too many requests"],
  [429, 'admission webhook "pace.example" denied the request: too many'],
  [503, "the server is currently unable to handle the request"],
  [500, 'Internal error occurred: failed calling webhook "kyverno.svc": context deadline exceeded'],
  [
    403,
    `${forbidden}exceeded quota: jobs, requested: count/jobs=1, used: count/jobs=9, limited: 9`,
  ],
  [403, `${forbidden}unable to create new content in namespace a because it is being terminated`],
  [403, `${forbidden}User "mos" cannot create resource "compressionjobs" in the namespace "a"`],
];

function eventOf([status, message]: readonly [number, string]) {
  const body = JSON.stringify({ kind: "Status", status: "Failure", message });
  return rejectionEvent(responseError('create compressionjobs "job-1"', status, body));
}

test("a job that the cluster's rules or policies deny fails with the API server's words", () => {
  for (const refusal of final) {
    const event = eventOf(refusal);
    assert.ok(event.type === "failure", refusal.join(" "));
    assert.equal(event.error.code, "resource_invalid");
    assert.ok(event.error.message.endsWith(`: ${refusal[1]}`), event.error.message);
  }
});

test("a job that the cluster does not take for now waits with the API server's words", () => {
  for (const refusal of passing) {
    const event = eventOf(refusal);
    assert.ok(event.type === "waiting", refusal.join(" "));
    assert.equal(event.reason, "not_submitted");
    assert.ok(event.message.endsWith(`: ${refusal[1]}`), event.message);
  }
});
