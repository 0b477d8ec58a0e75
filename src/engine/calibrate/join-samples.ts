import type { RunnableModel } from "../runtime/model-session.ts";
import type { SampleSource } from "../samples/open-samples.ts";
import { findMask, maskName } from "../runtime/summed-rows.ts";
import { elementTypes, type Sample, type TensorData } from "../runtime/tensor-data.ts";
import { at } from "../onnx/at.ts";
import { countElements } from "../onnx/tensor-shape.ts";

/** Samples that are read before they are joined, and tokens of a joined one, at most. */
const [readAhead, mostTokens] = [64, 1024];

/**
 * Joins samples of tokens into fewer, each of sentences of a like length without the padding that all
 * of them have: the same rows are computed in less time.
 * @returns the joined ones, and how many there are; the samples as they are where the model takes
 * anything else, or does not run on joined ones
 */
export async function joinSamples(
  model: RunnableModel,
  { samples, count }: Pick<SampleSource, "samples" | "count">,
  output: string,
): Promise<Pick<SampleSource, "samples" | "count">> {
  if (!takesSentences(model)) return { samples, count };
  const first: Sample[] = [];
  for await (const sample of samples) {
    first.push(sample);
    if (first.length === 2) break;
  }
  // Sizes that a model calls open can be fixed by its nodes.
  const runs = await model.run(join(first), [output]).then(
    () => true,
    () => false,
  );
  if (!runs) return { samples, count };
  let all = 0;
  for await (const _ of joinAll(samples)) all += 1;
  return { samples: { [Symbol.asyncIterator]: () => joinAll(samples) }, count: all };
}

/** Whether all inputs are matrices of the same open sizes, and one says which tokens are padding. */
function takesSentences({ signature: { inputs } }: RunnableModel): boolean {
  const [shape, ...others] = inputs.map((each) => (each.isTensor ? each.shape : []));
  return (
    shape?.length === 2 &&
    shape.every((size) => typeof size === "string" && size !== "") &&
    others.every((other) => other.join() === shape.join()) &&
    inputs.some(({ name }) => name === maskName)
  );
}

async function* joinAll(samples: AsyncIterable<Sample>): AsyncGenerator<Sample> {
  let waiting: Sample[] = [];
  for await (const sample of samples) {
    waiting.push(sample);
    if (waiting.length < readAhead) continue;
    yield* joinAlike(waiting);
    waiting = [];
  }
  yield* joinAlike(waiting);
}

function* joinAlike(samples: readonly Sample[]): Generator<Sample> {
  let joined: Sample[] = [];
  for (const sample of samples.toSorted((a, b) => countTokens(a) - countTokens(b))) {
    const sentences = [...joined, sample].reduce((sum, each) => sum + countSentences(each), 0);
    if (joined.length > 0 && sentences * countTokens(sample) > mostTokens) {
      yield join(joined);
      joined = [];
    }
    joined.push(sample);
  }
  if (joined.length > 0) yield join(joined);
}

function countSentences(sample: Sample): number {
  return at(at(sample, 0).shape, 0);
}

/** Tokens of the longest sentence, without padding after them. */
function countTokens(sample: Sample): number {
  const mask = findMask(sample) ?? new Uint8Array();
  const width = mask.length / countSentences(sample);
  let tokens = 1;
  for (const [index, isUsed] of mask.entries()) {
    if (isUsed === 1) tokens = Math.max(tokens, (index % width) + 1);
  }
  return tokens;
}

function join(samples: readonly Sample[]): Sample {
  const tokens = Math.max(...samples.map(countTokens));
  return at(samples, 0).map(({ name, type }) => {
    const parts = samples.map((sample) => cut(findTensor(sample, name), tokens));
    const shape = [parts.reduce((sum, part) => sum + at(part.shape, 0), 0), tokens];
    const bytes = Buffer.concat(parts.map((part) => part.bytes));
    return { name, type, shape, bytes: new Uint8Array(bytes) };
  });
}

function findTensor(sample: Sample, name: string): TensorData {
  const tensor = sample.find((each) => each.name === name);
  if (tensor === undefined) throw new TypeError(`A sample has no "${name}"`);
  return tensor;
}

/** The first tokens of each sentence. */
function cut(tensor: TensorData, tokens: number): TensorData {
  const { type, shape, bytes } = tensor;
  const [sentences, width] = [at(shape, 0), at(shape, 1)];
  const size = elementTypes[type].bytes;
  const cutShape = [sentences, tokens];
  const kept = new Uint8Array(countElements(cutShape) * size);
  for (let sentence = 0; sentence < sentences; sentence++) {
    const start = sentence * width * size;
    kept.set(bytes.subarray(start, start + tokens * size), sentence * tokens * size);
  }
  return { ...tensor, shape: cutShape, bytes: kept };
}
