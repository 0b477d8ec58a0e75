import {
  chooseSizes,
  describeFilling,
  describeShapes,
  generateSample,
  type TrialOptions,
  trySample,
} from "./generate-sample.ts";
import { inputShape, type SizeChoice } from "./input-sizes.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import type { Sample, TensorData } from "../runtime/tensor-data.ts";
import type { GeneratedInput } from "../../contract/jobs/telemetry.ts";
import { maxLineHeight } from "./draw-image.ts";
import { truncate } from "../../contract/text/truncate.ts";
import { replaceHiddenCharacters } from "../../contract/text/hidden-characters.ts";
import type { SampleInput } from "./input-content.ts";

/** Steps of a model with a state from one sample to the next. */
const stepsBetween = 8;

/** Tokens after a text whose keys and values are there. */
const continuedTokens = 4;

/** Most bytes of states that are kept. */
const maxStateBytes = 256 * 1024 ** 2;

/** Most inputs, and shapes of each, that are described. */
const described = { inputs: 16, shapes: 4, shape: 200, name: 253 };

interface PlanOptions extends TrialOptions {
  readonly count: number;
  /** Number of the first sample: others are apart from those before it. */
  readonly first: number;
}

interface Step {
  readonly choice: SizeChoice;
  readonly seed: number;
  /** Outputs of the step before, under the names of the inputs that take them. */
  readonly states?: readonly TensorData[];
}

export interface GeneratedSamples {
  readonly count: number;
  readonly generate: (index: number) => Sample;
  readonly description: GeneratedInput[];
}

/**
 * Chooses sizes on which a model runs, several where it leaves some open, and runs it as far as its
 * states need: a sample's are the outputs of the step before.
 * @throws ServiceError those of chooseSizes
 */
export async function planGeneratedSamples(
  model: RunnableModel,
  inputs: readonly SampleInput[],
  options: PlanOptions,
): Promise<GeneratedSamples> {
  const base = await chooseSizes(model, inputs, options);
  const planned = inputs.some(({ content }) => content?.kind === "state")
    ? await planSteps(model, inputs, base, options)
    : await planSizes(model, inputs, base, options);
  const steps = planned.slice(0, options.count);
  const hasStates = steps.some(({ states }) => states !== undefined);
  return {
    count: steps.length,
    generate: (index) =>
      generateStep(inputs, steps[index % steps.length] ?? { choice: base, seed: 0 }),
    description: inputs.slice(0, described.inputs).map((input) => {
      const shapes = new Set(steps.map(({ choice }) => describeShape(inputShape(input, choice))));
      const content = describeFilling(input, hasStates);
      const name = truncate(replaceHiddenCharacters(input.name), described.name);
      return { name, content, shapes: [...shapes].slice(0, described.shapes) };
    }),
  };
}

function describeShape(shape: readonly number[]): string {
  return shape.length === 0 ? "a scalar" : truncate(shape.join(" × "), described.shape);
}

function generateStep(inputs: readonly SampleInput[], { choice, seed, states = [] }: Step): Sample {
  const sample = generateSample(inputs, choice, seed);
  return sample.map((tensor) => states.find(({ name }) => name === tensor.name) ?? tensor);
}

/** Seeds from 0 on, in turn of every size on which the model runs. */
async function planSizes(
  model: RunnableModel,
  inputs: readonly SampleInput[],
  base: SizeChoice,
  options: PlanOptions,
): Promise<Step[]> {
  const choices = [base];
  const shapes = new Set([describeShapes(generateSample(inputs, base, 0))]);
  // The length of a window of sound says what the model takes, whatever else it runs on.
  const isVaried = inputs.some(
    ({ content }) => content?.kind === "image" || content?.kind === "tokens",
  );
  for (const choice of isVaried && options.count > 1 ? otherSizes(base) : []) {
    const sample = generateSample(inputs, choice, 0);
    const shape = describeShapes(sample);
    if (shapes.has(shape)) continue;
    shapes.add(shape);
    if ((await trySample(model, sample, options)) === undefined) choices.push(choice);
  }
  return Array.from({ length: options.count }, (_, index) => {
    // Two in a row have one size, so that pages and photographs have each.
    const choice = choices[Math.floor(index / 2) % choices.length] ?? base;
    return { choice, seed: options.first + index };
  });
}

/** Lines of text stay as high as their readers take them. */
function otherSizes({ sequence, height, width, ...choice }: SizeChoice): SizeChoice[] {
  const scale = (size: number, factor: number) =>
    Math.max(32, Math.round((size * factor) / 32) * 32);
  const higher = (factor: number) => (height <= maxLineHeight ? height : scale(height, factor));
  return [
    { ...choice, sequence: sequence * 2, height, width: scale(width, 1.5) },
    {
      ...choice,
      sequence: Math.max(1, sequence / 2),
      height: higher(1.25),
      width: scale(width, 0.75),
    },
  ];
}

/**
 * A recurrent model runs on from sample to sample; a language model continues every other text with
 * its keys and values.
 */
async function planSteps(
  model: RunnableModel,
  inputs: readonly SampleInput[],
  base: SizeChoice,
  options: PlanOptions,
): Promise<Step[]> {
  const first = generateSample(inputs, base, 0);
  const isState = ({ name }: TensorData) =>
    inputs.some((input) => input.name === name && input.content?.kind === "state");
  const stateBytes = first.filter(isState).reduce((sum, { bytes }) => sum + bytes.length, 0);
  const run = async (step: Step) => runStep(model, inputs, step, options.signal);
  if (stateBytes > 0) return planRecurrentSteps(base, run, { ...options, stateBytes });
  return planContinuations(base, run, options);
}

type RunStep = (step: Step) => Promise<TensorData[]>;

async function planRecurrentSteps(
  choice: SizeChoice,
  run: RunStep,
  { count, first, stateBytes }: PlanOptions & { readonly stateBytes: number },
): Promise<Step[]> {
  const steps: Step[] = [];
  if (stateBytes * count > maxStateBytes) {
    return Array.from({ length: count }, (_, index) => ({ choice, seed: first + index }));
  }
  let states: readonly TensorData[] = [];
  for (let seed = first * stepsBetween; ; seed++) {
    const step = { choice, seed, states };
    if (seed % stepsBetween === stepsBetween - 1) steps.push(step);
    if (steps.length === count) return steps;
    states = await run(step);
  }
}

async function planContinuations(
  base: SizeChoice,
  run: RunStep,
  { count, first }: PlanOptions,
): Promise<Step[]> {
  const steps: Step[] = [];
  const continued = { ...base, past: base.sequence, sequence: continuedTokens };
  let keptBytes = 0;
  for (let seed = first; seed < first + count; seed++) {
    const text = { choice: base, seed };
    if (seed % 2 === 0 || keptBytes > maxStateBytes) {
      steps.push(text);
      continue;
    }
    const states = await run(text);
    keptBytes += states.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const step = { choice: continued, seed, states };
    // A model that takes no more than one token after a text, or none, has texts only.
    const isRun = await run(step).then(
      () => true,
      () => false,
    );
    steps.push(isRun ? step : text);
  }
  return steps;
}

/** Runs a step; gives the states after it under the names of the inputs that take them. */
async function runStep(
  model: RunnableModel,
  inputs: readonly SampleInput[],
  step: Step,
  signal: AbortSignal,
): Promise<TensorData[]> {
  const taken = inputs.flatMap(({ name, content }) =>
    content?.kind === "state" ? [{ name, output: content.output }] : [],
  );
  const sample = generateStep(inputs, step);
  const outputs = taken.map(({ output }) => output);
  const tensors = await labelRuntimeErrors("original", model.run(sample, outputs), signal);
  return taken.flatMap(({ name, output }) => {
    const tensor = tensors.find((each) => each.name === output);
    return tensor === undefined ? [] : [{ ...tensor, name }];
  });
}
