import assert from "node:assert/strict";
import { batchSpec } from "../../src/contract/custom-resources/batch-resource.ts";
import { compressionJobSpec } from "../../src/contract/custom-resources/compression-job.ts";
import type { SpecCase } from "./spec-cases.ts";
import type { Complaints } from "./submit-resource.ts";

/** What the contract finds wrong, in the API server's notation. */
export function contractComplaints({ kind, spec }: SpecCase): Complaints {
  const schema = kind === "Batch" ? batchSpec : compressionJobSpec;
  // As it is on the wire: what is undefined is absent.
  const { error } = schema.safeParse(JSON.parse(JSON.stringify(spec)));
  return (error?.issues ?? []).flatMap((issue) => {
    const unknown = issue.code === "unrecognized_keys" ? issue.keys : [undefined];
    return unknown.map((key) => ({
      field: formatFieldPath(key === undefined ? issue.path : [...issue.path, key]),
      message: issue.message,
    }));
  });
}

function formatFieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => text + (typeof part === "number" ? `[${part}]` : `.${String(part)}`),
    "spec",
  );
}

/** Asserts that a spec is accepted, or refused with the name of the field that is wrong. */
export function assertFits({ wrong }: SpecCase, complaints: Complaints): void {
  if (wrong === undefined) assert.deepEqual(complaints, []);
  else
    assert.ok(
      namesField(complaints, `spec.${wrong}`),
      `spec.${wrong} is not named: ${JSON.stringify(complaints)}`,
    );
}

/** A field, or an entry of the map that it is. */
function namesField(complaints: Complaints, field: string): boolean {
  return complaints.some(
    (complaint) =>
      complaint.field === field ||
      complaint.field.startsWith(`${field}.`) ||
      complaint.message.includes(`${field} in body`),
  );
}
