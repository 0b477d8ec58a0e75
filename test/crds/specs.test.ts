import assert from "node:assert/strict";
import test, { after } from "node:test";
import fc from "fast-check";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { openSharedCluster } from "../support/cluster/shared-cluster.ts";
import { assertFits, contractComplaints } from "./contract-complaints.ts";
import { type SpecCase, specCases } from "./spec-cases.ts";
import { type Complaints, dryRuns } from "./submit-resource.ts";

const skip = clusterMissing;
const cluster = skip === false ? dryRuns(await openSharedCluster()) : undefined;
after(() => cluster?.close());

async function serverComplaints({ kind, spec }: SpecCase): Promise<Complaints> {
  assert.ok(cluster);
  return cluster.create(kind, spec);
}

for (const [what, specCase] of Object.entries(specCases)) {
  const { kind, wrong } = specCase;
  test(
    `a ${kind} with ${what} is ${wrong === undefined ? "taken" : "refused"} by Kubernetes`,
    { skip },
    async () => {
      assertFits(specCase, await serverComplaints(specCase));
    },
  );
}

test("rules across fields, and sources, are reported in the same words", { skip }, async () => {
  for (const what of [
    "too many jobs",
    "a target twice",
    "int4-weight for each channel",
    "int8-dynamic in blocks",
    "a source with another scheme",
    "a source whose host is none",
    "a source of more bytes",
    "an upload with more behind its hash",
    "a model that is nowhere",
  ]) {
    const specCase = specCases[what];
    assert.ok(specCase);
    const [contract] = contractComplaints(specCase);
    const [server] = await serverComplaints(specCase);
    assert.equal(server?.field, contract?.field);
    assert.ok(
      contract && server?.message.endsWith(contract.message),
      `${server?.message} / ${contract?.message}`,
    );
  }
});

/** Fields of the table's specs thrown together, most of them valid. */
function mixedSpecs(kind: SpecCase["kind"]): fc.Arbitrary<SpecCase> {
  const cases = Object.values(specCases).filter((one) => one.kind === kind);
  const valid = cases.filter(({ wrong }) => wrong === undefined);
  const fields = [...new Set(cases.flatMap(({ spec }) => Object.keys(spec)))];
  const fieldArbitrary = (field: string) => {
    const from = (some: readonly SpecCase[]) =>
      fc.constantFrom(...some.map(({ spec }) => spec[field]));
    return fc.oneof({ weight: 8, arbitrary: from(valid) }, { weight: 1, arbitrary: from(cases) });
  };
  const values = fields.map((field) => [field, fieldArbitrary(field)] as const);
  return fc.record(Object.fromEntries(values)).map((spec) => ({ kind, spec }));
}

test("specs of any mixture of fields are taken by both or by none", { skip }, async (t) => {
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(mixedSpecs("CompressionJob"), mixedSpecs("Batch")),
      async (specCase) => {
        const server = await serverComplaints(specCase);
        if (server.length === 0) taken++;
        assert.equal(
          server.length === 0,
          contractComplaints(specCase).length === 0,
          JSON.stringify(server),
        );
      },
    ),
    { numRuns: 200 },
  );
  t.diagnostic(`${taken} of 200 were taken`);
});
