import assert from "node:assert/strict";
import { test } from "node:test";
import { KnownCosts } from "../../../../operator/controllers/compression-job/observe/known-costs.ts";
import type { CompressionJobSpec } from "../../../../src/contract/custom-resources/compression-job.ts";
import { makeJob, start } from "../make-job.ts";

const takes = (peakMemoryBytes: number) => ({ peakMemoryBytes, diskBytes: 1 });

test("a job takes what the newest of its model, target and recipe took, or was forecast to", () => {
  const known = new KnownCosts();
  const note = (minute: number, telemetry: object, spec: Partial<CompressionJobSpec> = {}) => {
    const creationTimestamp = new Date(start + minute * 60_000).toISOString();
    const status = { status: "Completed", report: { telemetry } } as const;
    known.note(makeJob({ metadata: { creationTimestamp }, spec, status }));
  };
  const find = (spec: Partial<CompressionJobSpec> = {}, namespace = "models") =>
    known.find(makeJob({ spec, metadata: { namespace } }))?.peakMemoryBytes;
  assert.equal(find(), undefined);
  note(1, { forecast: takes(10) }, { dryRun: true });
  assert.equal(find(), 10);
  note(3, { forecast: takes(30), usage: takes(33) });
  note(2, { usage: takes(22) });
  note(4, { warnings: [] });
  assert.equal(find({ gates: { minSqnrDb: 20 } }), 33);
  for (const other of [{ target: "gpu" }, { recipe: { parallelism: 2 } }, { kind: "quantize" }]) {
    assert.equal(find(other as Partial<CompressionJobSpec>), undefined);
  }
  assert.equal(find({}, "others"), undefined);
  note(
    5,
    { usage: takes(50) },
    { model: { source: "https://models.test/1.onnx", name: "voices" } },
  );
  assert.equal(find({ model: { source: "https://models.test/2.onnx", name: "voices" } }), 50);
});
