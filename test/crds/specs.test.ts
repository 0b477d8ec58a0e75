import assert from "node:assert/strict";
import test, { after } from "node:test";
import fc from "fast-check";
import { batchSpec, compressionJobSpec } from "../../src/contract/custom-resources.ts";
import { clusterMissing } from "../cluster/cluster-missing.ts";
import { sharedCluster } from "../cluster/shared-cluster.ts";
import { type SpecCase, specCases } from "./spec-cases.ts";
import { type Complaints, dryRuns } from "./submit-resource.ts";

/** Skipped without a cluster, where the contract alone could be asked: it is the same table. */
const skip = clusterMissing;
const cluster = skip === false ? dryRuns(await sharedCluster()) : undefined;
after(() => cluster?.close());

/** What the contract finds wrong, in the API server's notation. */
function contractComplaints({ kind, spec }: SpecCase): Complaints {
  const schema = kind === "Batch" ? batchSpec : compressionJobSpec;
  // As it is on the wire: what is undefined is absent.
  const { error } = schema.safeParse(JSON.parse(JSON.stringify(spec)));
  return (error?.issues ?? []).flatMap((issue) => {
    const unknown = issue.code === "unrecognized_keys" ? issue.keys : [undefined];
    return unknown.map((key) => ({
      field: fieldOf(key === undefined ? issue.path : [...issue.path, key]),
      message: issue.message,
    }));
  });
}

function fieldOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => text + (typeof part === "number" ? `[${part}]` : `.${String(part)}`),
    "spec",
  );
}

async function serverComplaints({ kind, spec }: SpecCase): Promise<Complaints> {
  assert.ok(cluster);
  return cluster.create(kind, spec);
}

/** A field, or an entry of the map that it is. */
function names(complaints: Complaints, field: string): boolean {
  return complaints.some(
    (complaint) =>
      complaint.field === field ||
      complaint.field.startsWith(`${field}.`) ||
      complaint.message.includes(`${field} in body`),
  );
}

for (const [what, specCase] of Object.entries(specCases)) {
  const { kind, wrong } = specCase;
  test(
    `a ${kind} with ${what} is ${wrong === undefined ? "taken" : "refused"} by the contract and by Kubernetes`,
    { skip },
    async () => {
      for (const complaints of [contractComplaints(specCase), await serverComplaints(specCase)]) {
        if (wrong === undefined) assert.deepEqual(complaints, []);
        else assert.ok(names(complaints, `spec.${wrong}`), `spec.${wrong} is not named: ${JSON.stringify(complaints)}`);
      }
    },
  );
}

test("rules across fields are told in the same words", { skip }, async () => {
  for (const what of ["too many jobs", "a target twice", "int4-weight for each channel", "int8-dynamic in blocks"]) {
    const specCase = specCases[what];
    assert.ok(specCase);
    const [contract] = contractComplaints(specCase);
    const [server] = await serverComplaints(specCase);
    assert.equal(server?.field, contract?.field);
    assert.ok(contract && server?.message.endsWith(contract.message), `${server?.message} / ${contract?.message}`);
  }
});

/** Fields of the table's specs thrown together, most of them valid. */
function mixedSpecs(kind: SpecCase["kind"]): fc.Arbitrary<SpecCase> {
  const cases = Object.values(specCases).filter((one) => one.kind === kind);
  const valid = cases.filter(({ wrong }) => wrong === undefined);
  const fields = [...new Set(cases.flatMap(({ spec }) => Object.keys(spec)))];
  const valueOf = (field: string) => {
    const from = (some: readonly SpecCase[]) => fc.constantFrom(...some.map(({ spec }) => spec[field]));
    return fc.oneof({ weight: 8, arbitrary: from(valid) }, { weight: 1, arbitrary: from(cases) });
  };
  const values = fields.map((field) => [field, valueOf(field)] as const);
  return fc.record(Object.fromEntries(values)).map((spec) => ({ kind, spec }));
}

test("specs of any mixture of fields are taken by both or by none", { skip }, async (t) => {
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(mixedSpecs("CompressionJob"), mixedSpecs("Batch")), async (specCase) => {
      const server = await serverComplaints(specCase);
      if (server.length === 0) taken++;
      assert.equal(server.length === 0, contractComplaints(specCase).length === 0, JSON.stringify(server));
    }),
    { numRuns: 200 },
  );
  t.diagnostic(`${taken} of 200 were taken`);
});
