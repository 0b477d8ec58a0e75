import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { clone, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { z } from "zod";
import { ServiceError } from "../../../src/contract/errors.ts";
import { ModelProtoSchema } from "../../../src/engine/onnx/onnx_pb.js";
import type { ModelProto } from "../../../src/engine/onnx/onnx_pb.js";
import { opsetChanges } from "../../../src/engine/opset/opset-changes.ts";
import { opsetVersions } from "../../../src/engine/opset/opset-versions.ts";
import { minimumIrVersion, raiseOpset } from "../../../src/engine/opset/raise-opset.ts";
import { pythonMissing, runPython } from "../../support/python.ts";
import { realModel, realModelMissing, type RealModelName } from "../../support/real-models.ts";
import { integerAttribute, node, tensorInfo, floatInitializer } from "../../support/tiny-model.ts";
import { float, integers, makeModel, raisedCases, singleNode, text } from "./raised-cases.ts";
import { largestDifference, runModel } from "../onnx/run-model.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "raise-opset-"));
});
after(() => rm(folder, { recursive: true }));

const opsets = [13, 19, 21];

function opsetVersion(model: ModelProto): number {
  return Number(model.opsetImport[0]?.version);
}

function raised(model: ModelProto, to: number): ModelProto {
  const copy = clone(ModelProtoSchema, model);
  raiseOpset(copy, to);
  return copy;
}

for (const { name, model, tolerance = 0 } of raisedCases) {
  test(`raiseOpset() keeps the outputs of ${name}`, async () => {
    const expected = await runModel(model);
    for (const to of opsets.filter((opset) => opset > opsetVersion(model))) {
      const result = raised(model, to);
      assert.equal(opsetVersion(result), to);
      const difference = largestDifference(expected, await runModel(result));
      assert.ok(difference <= tolerance, `opset ${to}: outputs differ by ${difference}`);
    }
  });
}

test("raised models pass the official checker", { skip: pythonMissing }, async () => {
  for (const [index, { name, model }] of raisedCases.entries()) {
    // The checker takes the GroupNormalization of opset 18 to 20 for gone.
    const checked = name === "GroupNormalization" ? [21] : opsets;
    for (const to of checked) {
      const file = join(folder, `${index}-${to}.onnx`);
      await writeFile(file, toBinary(ModelProtoSchema, raised(model, to)));
    }
  }
  const program = `
import glob, onnx, sys
files = glob.glob(sys.argv[1] + "/*.onnx")
for file in files: onnx.checker.check_model(onnx.load(file), full_check=True)
print(len(files))`;
  assert.equal(
    (await runPython(program, [folder])).trim(),
    String(raisedCases.length * opsets.length - 2),
  );
});

const realCases: readonly {
  name: RealModelName;
  shapes?: Record<string, number[]>;
  tolerance?: number;
}[] = [
  { name: "ocr-detection", shapes: { x: [1, 3, 64, 96] } },
  // ONNX Runtime's AveragePool of opset 19 adds in another order, and the last layers carry that on.
  { name: "ocr-recognition", shapes: { x: [1, 3, 48, 96] }, tolerance: 2e-6 },
  { name: "ocr-orientation", shapes: { x: [1, 3, 48, 192] } },
  { name: "ocr-detection-v6", shapes: { x: [1, 3, 64, 96] } },
  { name: "ocr-recognition-v6", shapes: { x: [1, 3, 48, 96] }, tolerance: 2e-6 },
  { name: "ocr-orientation-constants", shapes: { x: [1, 3, 48, 192] } },
  { name: "page-orientation", shapes: { x: [1, 3, 224, 224] } },
  { name: "voice-v5", shapes: { input: [1, 576], state: [2, 1, 128], sr: [] } },
  { name: "voice-legacy", shapes: { input: [1, 512], h: [2, 1, 64], c: [2, 1, 64], sr: [] } },
];
for (const { name, shapes, tolerance = 0 } of realCases) {
  test(
    `raiseOpset() keeps the outputs of the real model ${name}`,
    { skip: await realModelMissing(name) },
    async () => {
      const model = fromBinary(ModelProtoSchema, await readFile(realModel(name)));
      const expected = await runModel(model, shapes);
      for (const to of [13, 21].filter((opset) => opset > opsetVersion(model))) {
        const difference = largestDifference(expected, await runModel(raised(model, to), shapes));
        assert.ok(
          difference <= (to > 18 ? tolerance : 0),
          `opset ${to}: outputs differ by ${difference}`,
        );
      }
    },
  );
}

const refusals: readonly [reason: string, model: ModelProto, message: RegExp][] = [
  [
    "an operator that is not known",
    singleNode({ opset: 11, opType: "ATen", shape: [2] }),
    /"ATen"/,
  ],
  [
    "an operator that was gone before",
    singleNode({ opset: 12, opType: "Upsample", shape: [2] }),
    /"Upsample"/,
  ],
  ["an operator that comes later", singleNode({ opset: 11, opType: "Gelu", shape: [2] }), /"Gelu"/],
  ["an opset below 7", singleNode({ opset: 6, opType: "Add", shape: [2] }), /7 is the oldest/],
  [
    "a BatchNormalization that trains",
    singleNode({ opset: 9, opType: "BatchNormalization", shape: [2, 2], outputs: [2, 1, 1] }),
    /BatchNormalization: it has the outputs of training/,
  ],
  [
    "statistics for each position",
    singleNode({
      opset: 7,
      opType: "BatchNormalization",
      shape: [2, 2],
      attributes: [integerAttribute("spatial", 0)],
    }),
    /each position/,
  ],
  [
    "a transformation that is gone",
    singleNode({
      opset: 11,
      opType: "Resize",
      shape: [1, 1, 2, 2],
      attributes: [text("coordinate_transformation_mode", "tf_half_pixel_for_nn")],
    }),
    /tf_half_pixel_for_nn/,
  ],
  [
    "scales that both enlarge and shrink",
    singleNode({
      opset: 10,
      opType: "Resize",
      shape: [2, 2],
      constants: [floatInitializer("scales", [2], (index) => index + 0.5)],
    }),
    /both enlarges and shrinks/,
  ],
  [
    "a bound of an undeclared type beside float16",
    makeModel(10, {
      input: [tensorInfo("x", [2], 10)],
      output: [tensorInfo("y", [2], 10)],
      node: [node("Relu", ["x"], ["h"]), node("Clip", ["h"], ["y"], [float("min", 0)])],
    }),
    /not declared as float32/,
  ],
];
for (const [reason, model, message] of refusals) {
  test(`raiseOpset() refuses ${reason} and changes nothing`, () => {
    model.graph?.node.unshift(
      ...(singleNode({ opset: 11, opType: "Softmax", shape: [2, 2] }).graph?.node ?? []),
    );
    const copy = clone(ModelProtoSchema, model);
    assert.throws(
      () => raiseOpset(copy, 21),
      (error) =>
        error instanceof ServiceError &&
        error.code === "model_opset_unsupported" &&
        message.test(error.message),
    );
    assert.ok(equals(ModelProtoSchema, copy, model));
  });
}

test("raiseOpset() leaves a model alone that is at the opset", () => {
  const model = singleNode({ opset: 13, opType: "Softmax", shape: [2, 3] });
  const copy = raised(model, 13);
  assert.ok(equals(ModelProtoSchema, copy, model));
});

test("raiseOpset() lifts the IR version to the opset's and no further", () => {
  const model = singleNode({ opset: 11, opType: "Relu", shape: [2] });
  model.irVersion = 3n;
  assert.equal(raised(model, 13).irVersion, 7n);
  assert.equal(raised(model, 21).irVersion, 10n);
  model.irVersion = 10n;
  assert.equal(raised(model, 13).irVersion, 10n);
});

test("raiseOpset() adds one constant for equal ones", () => {
  const axes = (): Parameters<typeof node> => ["Unsqueeze", ["x"], ["y"], [integers("axes", 1)]];
  const model = makeModel(11, {
    input: [tensorInfo("x", [2])],
    node: [node(...axes()), node(...axes())],
  });
  assert.equal(raised(model, 13).graph?.initializer.length, 1);
});

const history = z.record(
  z.string(),
  z.object({ versions: z.array(z.int()), changed: z.array(z.int()) }),
);

test(
  "the table of opsets is the official one, and rewrites every change of meaning",
  { skip: pythonMissing },
  async () => {
    const official = history.parse(JSON.parse(await runPython(historyProgram)));
    const names = Object.keys(official).sort();
    assert.deepEqual([...opsetVersions.keys()].sort(), names);
    for (const [name, { versions, changed }] of Object.entries(official)) {
      assert.deepEqual(opsetVersions.get(name), versions, name);
      const rewritten = Object.keys(opsetChanges[name] ?? {}).map(Number);
      assert.deepEqual(
        changed.filter((version) => !rewritten.includes(version)),
        [],
        `${name} changed in these opsets`,
      );
    }
  },
);

test("minimumIrVersion() is the official one", { skip: pythonMissing }, async () => {
  const program =
    "import json, onnx.helper as h; print(json.dumps([[r[2], r[1]] for r in h.VERSION_TABLE]))";
  const table = z.array(z.tuple([z.int(), z.int()])).parse(JSON.parse(await runPython(program)));
  for (const [opset, irVersion] of table)
    assert.equal(minimumIrVersion(opset), irVersion, `opset ${opset}`);
});

/** Finds, by operator, its opsets and those of them that took away or changed an attribute, an input or an output. */
const historyProgram = `
import collections, json, onnx.defs, onnx.helper

def attributes(schema):
    value = lambda a: onnx.helper.get_attribute_value(a.default_value) if a.default_value.type else None
    return {a.name: (str(a.type), str(value(a))) for a in schema.attributes.values()}

def fits(old, new):
    return new == old or (old.endswith("Single") and new.endswith("Optional"))

def keeps(old, new):
    kept = [str(x.option) for x in old], [str(x.option) for x in new]
    return (len(kept[1]) >= len(kept[0]) and all(fits(o, n) for o, n in zip(*kept))
        and all(n.endswith("Optional") for n in kept[1][len(kept[0]):]))

schemas = collections.defaultdict(list)
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "" and schema.since_version <= 21: schemas[schema.name].append(schema)
result = {}
for name, versions in schemas.items():
    versions.sort(key=lambda schema: schema.since_version)
    changed = [new.since_version for old, new in zip(versions, versions[1:]) if new.since_version > 7 and not (
        attributes(old).items() <= attributes(new).items() and keeps(old.inputs, new.inputs)
        and keeps(old.outputs, new.outputs) and not new.deprecated)]
    result[name] = {"versions": [schema.since_version for schema in versions], "changed": changed}
print(json.dumps(result))`;
