import { comparableOutputs } from "../evaluate/output-comparison.ts";
import { describeShapes } from "../samples/generate-sample.ts";
import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import { logitsName } from "../runtime/logit-rows.ts";
import { describeTokens } from "../samples/language-inputs.ts";
import { openTextSamples } from "./open-text-samples.ts";
import { openSamples } from "../samples/open-samples.ts";
import type { RunnableModel, SessionMemory } from "../runtime/model-session.ts";
import type { ModelRun } from "./model-run.ts";
import { runOnSamples } from "./run-whole-model.ts";
import type { RunSettings, SampleWork } from "./sample-visitor.ts";
import { TensorSpool } from "./tensor-spool.ts";
import { findBoundedOutputs } from "../evaluate/bounded-outputs.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { quoteName } from "../../contract/text/quote-name.ts";

interface RecordOptions extends RunSettings {
  /** A local `.npz` file, or one of text; without it, data is generated or built in. */
  readonly dataPath?: string | undefined;
  /** The checkpoint that the original was written from. */
  readonly checkpointPath?: string | undefined;
  readonly evaluation: { readonly samples: number };
  readonly onProgress: (fraction: number, message: string) => void;
}

/** The original's outputs on samples. */
export interface Recording extends SampleWork, AsyncDisposable {
  readonly tensors: TensorSpool;
  /** Outputs between 0 and 1. */
  readonly boundedOutputs: ReadonlySet<string>;
  readonly warnings: readonly EvaluationWarning[];
  readonly memory: Partial<SessionMemory>;
}

/**
 * Runs the original on the caller's samples or on generated ones, and keeps its outputs.
 * @throws ServiceError those of runOnSamples and openSamples
 */
export async function recordOriginal(run: ModelRun, options: RecordOptions): Promise<Recording> {
  const { scratchDirectory, spoolMemory, onProgress, log } = options;
  await using resources = new AsyncDisposableStack();
  const spool = new TensorSpool(scratchDirectory, spoolMemory);
  const tensors = resources.use(spool);
  const visitor = {
    prepare: async (model: RunnableModel) => {
      const { names, warnings: others } = comparableOutputs(model);
      const { source: text, warnings } = await openTextSamples(model, options);
      const outputs = text === undefined ? names : [logitsName];
      const opened = text ?? openSamples(model, { ...options, modelPath: run.path, outputs });
      const source = resources.use(await opened);
      const uncompared = [...others, ...warnings];
      for await (const sample of source.samples) {
        const first = describeTokens(sample) ?? describeShapes(sample);
        log(`Comparing ${formatCount(source.count, `${source.data} sample`)}, the first: ${first}`);
        break;
      }
      for (const { name, content, shapes } of source.generated ?? []) {
        log(`Generated for ${quoteName(name)}: ${content}; ${shapes.join(", ")}`);
      }
      return { source, outputs, uncompared };
    },
    visit: tensors.write.bind(tensors),
    onProgress: (fraction: number) => onProgress(fraction, "Running the original"),
  };
  const { work, memory, warnings } = await runOnSamples(run, visitor, options);
  const boundedOutputs = await findBoundedOutputs(run.path);
  const owned = resources.move();
  return {
    ...work,
    boundedOutputs,
    tensors,
    warnings: [...work.uncompared, ...warnings],
    memory,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
