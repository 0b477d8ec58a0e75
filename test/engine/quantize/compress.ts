import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import type { Target } from "../../../src/contract/jobs/target.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import type { CompressionReport, WeightReport } from "../../../src/engine/compression-report.ts";
import { runPython } from "../../support/python.ts";

export const contribTarget: Target = {
  name: "test",
  description: "Any operators",
  executionProvider: "cpu",
  operators: "contrib",
  recipe: {},
  presets: {},
};

/** A folder that is deleted after the test. */
export async function makeFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "compress-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

export function compress(
  modelPath: string,
  outputDirectory: string,
  recipe: PartialRecipe,
  target = contribTarget,
): Promise<CompressionReport> {
  return compressModel(modelPath, {
    kind: "compress",
    recipe: resolveRecipe(recipe),
    target,
    outputDirectory,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  });
}

export function weightNamed(report: CompressionReport, name: string): WeightReport {
  const found = report.weights.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`The report has no weight "${name}"`);
  return found;
}

/** A result in numbers: how far its outputs are from the original's, and its operators. */
export interface Comparison {
  readonly sqnrDb: number;
  readonly operators: Record<string, number>;
  readonly opset: number;
}

const program = `
import json, sys
import numpy as np, onnx, onnxruntime as ort

def feeds(session):
    random = np.random.default_rng(0)
    made = {}
    for value in session.get_inputs():
        open_sizes = iter([1, 48, 96] if len(value.shape) == 4 else [1, 512 if value.type == "tensor(float)" else 16])
        shape = [size if isinstance(size, int) else next(open_sizes) for size in value.shape]
        if len(shape) == 4 and not isinstance(value.shape[1], int): shape = [1, 3, 48, 96]
        if value.type == "tensor(float)":
            made[value.name] = (random.standard_normal(shape) * 0.5).astype(np.float32)
        elif "sr" in value.name:
            made[value.name] = np.full(shape, 16000, np.int64)
        else:
            made[value.name] = random.integers(0, 1000, shape) if "ids" == value.name[-3:] and "type" not in value.name else np.ones(shape, np.int64)
    return made

def run(path, inputs=None):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = inputs or feeds(session)
    return inputs, session.run(None, inputs)

def count(graph, counts):
    for node in graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
        for attribute in node.attribute:
            if attribute.HasField("g"): count(attribute.g, counts)
    return counts

def compare(original, result):
    onnx.checker.check_model(result, full_check=True)
    inputs, before = run(original)
    _, after = run(result, inputs)
    levels = []
    for x, y in zip(before, after):
        noise = float(((x.astype(np.float64) - y) ** 2).sum())
        signal = float((x.astype(np.float64) ** 2).sum())
        levels.append(150.0 if noise == 0 else 10 * np.log10(signal / noise))
    model = onnx.load(result, load_external_data=False)
    operators = count(model.graph, {})
    for body in model.functions: count(body, operators)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    return {"sqnrDb": float(min(levels)), "operators": operators, "opset": opset}

paths = sys.argv[1:]
print(json.dumps([compare(*pair) for pair in zip(paths[::2], paths[1::2])]))
`;

/**
 * Compares results with their originals, given in pairs.
 * @throws Error where the checker refuses a result or Python's onnxruntime cannot run it
 */
export async function compareInPython(
  pairs: readonly (readonly [string, string])[],
): Promise<Comparison[]> {
  return JSON.parse(await runPython(program, pairs.flat()));
}

/** The same for one result in its folder. */
export async function compareResult(original: string, folder: string): Promise<Comparison> {
  const [comparison] = await compareInPython([[original, join(folder, "model.onnx")]]);
  if (comparison === undefined) throw new Error("Python compared nothing");
  return comparison;
}
