import { mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { create } from "@bufbuild/protobuf";
import {
  asCalibrationError,
  type CalibrationSource,
  openCalibrationSamples,
} from "./open-calibration-samples.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { readAvailableMemoryBytes } from "../accuracy/available-memory.ts";
import { planModelRun } from "../accuracy/model-run.ts";
import { runOnSamples } from "../accuracy/run-whole-model.ts";
import { SpoolMemory } from "../accuracy/tensor-spool.ts";
import { logitsName } from "../evaluate/language-inputs.ts";
import type { RunnableModel } from "../evaluate/model-session.ts";
import type { TensorData } from "../evaluate/tensor-data.ts";
import { UniqueNames } from "../onnx/names.ts";
import { NodeProtoSchema, ValueInfoProtoSchema } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { writeModel } from "../onnx/write-model.ts";

export interface ObserveOptions {
  readonly recipe: Pick<Recipe, "calibration" | "evaluation">;
  readonly calibrationPath: string | undefined;
  /** Folder for files that live as long as the call. */
  readonly scratchDirectory: string;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

/** Most bytes of tensors that cross from stage to stage in memory. */
const spoolBytes = 64 * 1024 ** 2;

/**
 * Runs a model on the calibration's samples with values of its graph as outputs, which `visit` gets
 * sample by sample; none is kept. The runtime has one thread, so that sums do not depend on the
 * machine's processors. A model that does not fit into memory is run in stages.
 * @throws ServiceError those of openCalibrationSamples and runOnSamples
 */
export async function observeActivations(
  model: OnnxModel,
  values: readonly string[],
  { visit, ...options }: ObserveOptions & { readonly visit: (tensor: TensorData) => void },
): Promise<Omit<CalibrationSource, "samples" | keyof AsyncDisposable>> {
  const { scratchDirectory, signal, log, onProgress } = options;
  const folder = await mkdtemp(path.join(scratchDirectory, "calibration-"));
  await using resources = new AsyncDisposableStack();
  resources.defer(() => rm(folder, { recursive: true }));
  const observed = withOutputs(model, values);
  await writeModel(observed.model, { directory: folder, name: "model", signal });
  const outputs = [...observed.names.keys()];
  const visitor = {
    prepare: async (session: RunnableModel) => {
      const opened = await openCalibrationSamples(session, {
        ...options,
        modelPath: model.path,
        outputs,
      });
      return { source: resources.use(opened), outputs };
    },
    visit: (_sample: number, tensors: readonly TensorData[]) => {
      for (const tensor of tensors) {
        visit({ ...tensor, name: observed.names.get(tensor.name) ?? tensor.name });
      }
      return Promise.resolve();
    },
    onProgress: (fraction: number) => onProgress(fraction, "Calibrating"),
  };
  const run = await planModelRun(
    "original",
    path.join(folder, "model.onnx"),
    await readAvailableMemoryBytes(),
  );
  const running = runOnSamples(run, visitor, {
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory: folder,
    spoolMemory: new SpoolMemory(spoolBytes),
    signal,
    log,
  });
  const { work } = await asCalibrationError(running);
  const { data, count, unused, failureCode, evaluationSamples } = work.source;
  return { data, count, unused, failureCode, evaluationSamples };
}

/** A copy of the model whose outputs are these values. A value that is an input is copied first. */
function withOutputs(
  model: OnnxModel,
  values: readonly string[],
): { model: OnnxModel; names: ReadonlyMap<string, string> } {
  const { graph } = model.proto;
  if (graph === undefined) throw new TypeError("A model without a graph was planned");
  const declared = new Map(graph.output.map((output) => [output.name, output]));
  const unique = UniqueNames.forModel(model.proto);
  const inputs = new Set(graph.input.map(({ name }) => name));
  const names = new Map(
    values.map((name) => [inputs.has(name) ? unique.allocate(`${name}_observed`) : name, name]),
  );
  const copies = [...names]
    .filter(([output, name]) => output !== name)
    .map(([output, name]) =>
      create(NodeProtoSchema, { opType: "Identity", input: [name], output: [output] }),
    );
  // A language model is known by its logits.
  const kept = declared.has(logitsName) ? [logitsName] : [];
  const changed = {
    ...graph,
    node: [...graph.node, ...copies],
    output: [...new Set([...names.keys(), ...kept])].map(
      (name) => declared.get(name) ?? create(ValueInfoProtoSchema, { name }),
    ),
  };
  return { model: { ...model, proto: { ...model.proto, graph: changed } }, names };
}
