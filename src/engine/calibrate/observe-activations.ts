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
import { type Sample, type TensorData, tensorNumbers } from "../evaluate/tensor-data.ts";
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
  readonly visit: (tensor: TensorData, mask: readonly boolean[] | undefined) => void;
}

/** What was observed on. */
export type Observed = Omit<CalibrationSource, "samples" | keyof AsyncDisposable>;

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
  { visit, tasks = [], ...options }: ObserveActivationsOptions,
): Promise<Observed> {
  const { scratchDirectory, signal, log, onProgress } = options;
  const folder = await mkdtemp(path.join(scratchDirectory, "calibration-"));
  await using resources = new AsyncDisposableStack();
  resources.defer(() => rm(folder, { recursive: true }));
  const observed = withOutputs(model, values);
  await writeObserved(observed.model, folder, { tasks, signal });
  const outputs = [...observed.names.keys()];
  let mask: readonly boolean[] | undefined;
  async function* readMasks(samples: AsyncIterable<Sample>) {
    for await (const sample of samples) {
      mask = findMask(sample);
      yield sample;
    }
  }
  const visitor = {
    prepare: async (session: RunnableModel) => {
      const opened = await openCalibrationSamples(session, {
        ...options,
        modelPath: model.path,
        outputs,
      });
      const source = resources.use(opened);
      const samples = { [Symbol.asyncIterator]: () => readMasks(source.samples) };
      return { source: { ...source, samples }, outputs };
    },
    visit: (_sample: number, tensors: readonly TensorData[]) => {
      for (const tensor of tensors) {
        visit({ ...tensor, name: observed.names.get(tensor.name) ?? tensor.name }, mask);
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

/** The input that says which tokens are padding, in exports of language models and embeddings. */
const maskName = "attention_mask";

function findMask(sample: Sample): boolean[] | undefined {
  const mask = sample.find(({ name }) => name === maskName);
  return mask && Array.from(tensorNumbers(mask), Boolean);
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
