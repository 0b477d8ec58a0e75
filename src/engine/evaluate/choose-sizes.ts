import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import { countElements } from "../onnx/count-elements.ts";
import { describeShapes } from "./describe-sample.ts";
import { generateSample } from "./generate-sample.ts";
import { sizeChoices, type SizeChoice } from "./input-sizes.ts";
import type { RunnableModel } from "./runnable-model.ts";
import { RuntimeCrashError } from "./runtime-crash-error.ts";
import type { TensorSignature } from "./session-protocol.ts";
import type { Sample, TensorData } from "./tensor-data.ts";

export interface TrialOptions {
  /** Outputs that are fetched. */
  readonly outputs: readonly string[];
  readonly signal: AbortSignal;
}

/** The model's inputs. @throws ServiceError evaluation_failed for one that takes no tensor. */
export function requireTensorInputs({ signature }: RunnableModel): TensorSignature[] {
  return signature.inputs.map((input) => {
    if (input.isTensor) return input;
    const message = `Input "${input.name}" takes no tensor, which cannot be evaluated`;
    throw new ServiceError("evaluation_failed", message);
  });
}

/** Generates a sample on which the model runs, and runs it. */
export async function runOnGeneratedSample(
  model: RunnableModel,
  options: TrialOptions,
): Promise<{ sample: Sample; outputs: TensorData[] }> {
  const inputs = requireTensorInputs(model);
  const sample = generateSample(inputs, await chooseSizes(model, inputs, options), 0);
  return { sample, outputs: await model.run(sample, options.outputs) };
}

/**
 * The first choice of sizes on which the model runs and has at least one output element.
 * @throws ServiceError evaluation_failed if there is none
 */
export async function chooseSizes(
  model: RunnableModel,
  inputs: readonly TensorSignature[],
  options: TrialOptions,
): Promise<SizeChoice> {
  const tried = new Set<string>();
  let refusal: Error | undefined;
  for (const choice of sizeChoices) {
    const sample = generateSample(inputs, choice, 0);
    const key = `${describeShapes(sample)} ${choice.idLimit}`;
    if (tried.has(key)) continue;
    tried.add(key);
    const error = await trySample(model, sample, options);
    if (error === undefined) return choice;
    refusal ??= error;
  }
  const advice = `give evaluation data. ${refusal?.message ?? ""}`;
  throw new ServiceError(
    "evaluation_failed",
    `The original runs on none of ${tried.size} generated inputs; ${advice}`,
    { cause: refusal },
  );
}

/** Why a sample cannot be used; undefined where it can. A crash is no question of sizes. */
async function trySample(
  model: RunnableModel,
  sample: Sample,
  { outputs, signal }: TrialOptions,
): Promise<Error | undefined> {
  const shapes = describeShapes(sample);
  try {
    const tensors = await model.run(sample, outputs);
    const isEmpty = tensors.every(({ shape }) => countElements(shape) === 0);
    return isEmpty ? new Error(`Its outputs are empty on ${shapes}`) : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RuntimeCrashError) {
      const message = `The original could not be run on ${shapes}: ${error.message}`;
      throw new ServiceError("evaluation_failed", message, { cause: error });
    }
    return new Error(`On ${shapes}: ${errorMessage(error)}`, { cause: error });
  }
}
