import { mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { create } from "@bufbuild/protobuf";
import { joinSamples } from "./join-samples.ts";
import { writeProductModel } from "./write-product-model.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { readAvailableMemoryBytes } from "../accuracy/available-memory.ts";
import { planModelRun } from "../accuracy/model-run.ts";
import {
  asCalibrationError,
  findSharedSamples,
  openLaterSamples,
} from "../accuracy/open-later-samples.ts";
import type { LaterSamples } from "../accuracy/open-text-samples.ts";
import { runOnSamples } from "../accuracy/run-whole-model.ts";
import type { SampleVisitor, SampleWork } from "../accuracy/sample-visitor.ts";
import { SpoolMemory } from "../accuracy/tensor-spool.ts";
import { isCheckpoint } from "../language/open-language-model.ts";
import { logitsName } from "../runtime/logit-rows.ts";
import type { RunnableModel, WrittenSums } from "../runtime/model-session.ts";
import type { SummedRows } from "../runtime/session-protocol.ts";
import { findMask } from "../runtime/summed-rows.ts";
import type { Sample, TensorData } from "../runtime/tensor-data.ts";
import { at } from "../onnx/at.ts";
import { layoutModel } from "../onnx/layout-model.ts";
import { UniqueNames } from "../onnx/names.ts";
import { NodeProtoSchema, ValueInfoProtoSchema } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { type Destination, writeLayout } from "../onnx/write-model.ts";
import { runTasks } from "../quantize/tasks/run-tasks.ts";
import type { RoundedTask } from "../quantize/tasks/weight-task.ts";

export interface ObserveOptions {
  readonly recipe: Pick<Recipe, "calibration" | "evaluation">;
  readonly calibrationPath: string | undefined;
  /** Folder for files that live as long as the call. */
  readonly scratchDirectory: string;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

interface ObserveActivationsOptions extends ObserveOptions {
  /** Of weights that the model has beside its own. */
  readonly tasks?: readonly RoundedTask[];
  /** @param mask of the sample: which of its positions are no padding, where it says so */
  readonly visit?: (tensor: TensorData, mask: Uint8Array | undefined) => void;
  /** What is summed up of the values, which `visit` does not get. */
  readonly sums?: readonly SummedRows[];
  readonly onSums?: (written: WrittenSums) => void;
}

/** What was observed on. */
export type Observed = Omit<LaterSamples, "samples" | keyof AsyncDisposable>;

/** Most bytes of tensors that cross from stage to stage in memory. */
const spoolBytes = 64 * 1024 ** 2;
/** Of the runtime. */
const threads = 2;

/**
 * Runs a model on the calibration's samples with values of its graph as outputs, which `visit` gets
 * sample by sample, or whose rows are summed up; none is kept. The runtime has as many threads on any
 * machine, so that sums do not depend on its processors. A model that does not fit into memory is run
 * in stages.
 * @throws ServiceError calibration_data_invalid if the caller's data does not fit; those of
 * openLaterSamples and runOnSamples
 */
export async function observeActivations(
  model: OnnxModel,
  values: readonly string[],
  { visit, sums, onSums, tasks = [], ...options }: ObserveActivationsOptions,
): Promise<Observed> {
  const { recipe, calibrationPath, scratchDirectory, signal, log, onProgress } = options;
  const folder = await mkdtemp(path.join(scratchDirectory, "calibration-"));
  await using resources = new AsyncDisposableStack();
  resources.defer(() => rm(folder, { recursive: true }));
  const observed = withOutputs(model, values);
  await writeObserved(observed.model, folder, { tasks, signal });
  const outputs = [...observed.names.keys()];
  const summed = sums && {
    modelPath: await writeProductModel(folder),
    rows: sums.map((each) => ({ ...each, values: each.values.map(observed.outputOf) })),
  };
  let mask: Uint8Array | undefined;
  async function* readMasks(samples: AsyncIterable<Sample>) {
    for await (const sample of samples) {
      mask = findMask(sample);
      yield sample;
    }
  }
  const visitor = {
    prepare: async (session: RunnableModel) => {
      const opened = await openLaterSamples(session, {
        modelPath: model.path,
        checkpointPath: isCheckpoint(model.path) ? model.path : undefined,
        dataPath: calibrationPath,
        evaluationSamples: findSharedSamples(recipe),
        samples: recipe.calibration?.samples ?? 1,
        outputs,
        signal,
      });
      const source = resources.use(opened);
      if (summed !== undefined) {
        const joined = await joinSamples(session, source, at(outputs, 0));
        return { source: { ...source, ...joined }, count: source.count, outputs: [], sums: summed };
      }
      const samples = { [Symbol.asyncIterator]: () => readMasks(source.samples) };
      return { source: { ...source, samples }, count: source.count, outputs };
    },
    visit: (_sample: number, tensors: readonly TensorData[]) => {
      for (const tensor of tensors) {
        visit?.({ ...tensor, name: observed.names.get(tensor.name) ?? tensor.name }, mask);
      }
      return Promise.resolve();
    },
    onSums: (written: WrittenSums) => onSums?.(written),
    onProgress: (fraction: number) => onProgress(fraction, "Calibrating"),
  };
  const work = await runWritten(visitor, { folder, signal, log });
  const { data, unused, failureCode, evaluationSamples } = work.source;
  return { data, count: work.count, unused, failureCode, evaluationSamples };
}

/** Runs the model that lies in a folder. */
async function runWritten<Work extends SampleWork>(
  visitor: SampleVisitor<Work>,
  { folder, signal, log }: Pick<ObserveOptions, "signal" | "log"> & { readonly folder: string },
): Promise<Work> {
  const file = path.join(folder, "model.onnx");
  const run = await planModelRun("original", file, await readAvailableMemoryBytes());
  const running = runOnSamples(run, visitor, {
    executionProvider: "cpu",
    threads,
    scratchDirectory: folder,
    spoolMemory: new SpoolMemory(spoolBytes),
    signal,
    log,
  });
  return (await asCalibrationError(running)).work;
}

async function writeObserved(
  model: OnnxModel,
  directory: string,
  { tasks, signal }: { readonly tasks: readonly RoundedTask[]; readonly signal: AbortSignal },
): Promise<void> {
  const layout = layoutModel(model, { name: "model", shards: 1, assignShard: () => 0 });
  const writeComputedPayloads = async (find: (payload: number) => readonly Destination[]) => {
    const placed = tasks.map((task) => {
      const { values } = task.outputs;
      return { task, destinations: new Map([[values, find(values)]]) };
    });
    await runTasks(placed, { signal, onBytes: () => {} });
  };
  await writeLayout(model, { directory, layout, signal, writeComputedPayloads });
}

/** A copy of the model whose outputs are these values. A value that is an input is copied first. */
function withOutputs(
  model: OnnxModel,
  values: readonly string[],
): {
  model: OnnxModel;
  /** Of values, by the output that has them. */
  names: ReadonlyMap<string, string>;
  outputOf: (value: string) => string;
} {
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
  const outputs = new Map(Array.from(names, ([output, name]) => [name, output]));
  return {
    model: { ...model, proto: { ...model.proto, graph: changed } },
    names,
    outputOf: (value) => outputs.get(value) ?? value,
  };
}
