import type { OutputWriter } from "./output-writer.ts";
import { convertScales } from "./run-block-task.ts";
import { releaseBuffers, SourceReader } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";
import { type ChannelSlice, channelSlices, sliceTiles } from "./tiles.ts";
import type { AffineTask, FloatType, ProductBias, TaskResult } from "./weight-task.ts";
import { at } from "../../onnx/at.ts";
import { emptyErrorSums } from "../../evaluate/error-metrics.ts";
import { affineParameters, type AffineParameters } from "../kernels/affine-parameters.ts";
import {
  type ChannelRanges,
  createChannelRanges,
  widenChannelRanges,
} from "../kernels/channel-ranges.ts";
import { bfloat16ToFloat32 } from "../kernels/convert-bfloat16.ts";
import type { ErrorSums } from "../kernels/error-sums.ts";
import { addMeanErrors } from "./mean-errors.ts";
import { quantizeLinear } from "../kernels/quantize-linear.ts";

/** Reads a weight twice: for its ranges, and to quantize it. */
export function* runAffineTask(
  task: AffineTask,
  output: OutputWriter,
  limits: TileLimits,
): Generator<number, TaskResult> {
  const { weight } = task;
  const bias = task.bias && readBias(task.bias);
  const sums = emptyErrorSums();
  using reader = new SourceReader(task);
  const meanErrors = new Float64Array(task.bias?.elements ?? 0);
  const context = { task, reader, output, limits, sums, meanErrors };
  for (const slice of channelSlices(task, limits)) {
    const ranges = yield* measureRanges(context, slice);
    const parameters = affineParameters(ranges, task.format);
    const unfit = bias && fitToBias(parameters, ranges, bias, slice);
    const scales = roundScales(parameters, task.scaleType);
    const rejection = unfit ?? findRejection(ranges, parameters);
    if (rejection !== undefined) return { weight, sums, rejection };
    yield* quantizeTiles(context, slice, parameters);
    writeParameters(context, slice, { scales, zeroPoints: parameters.zeroPoints });
    if (bias !== undefined) writeBias(context, slice, { ...bias, scales: parameters.scales });
    releaseBuffers(ranges.min, ranges.max, scales, parameters.scales, parameters.zeroPoints);
  }
  return { weight, sums, rejection: undefined };
}

function* measureRanges(
  { reader, limits }: SliceContext,
  slice: ChannelSlice,
): Generator<number, ChannelRanges> {
  const ranges = createChannelRanges(slice.layout);
  for (const { rectangle, start } of sliceTiles(slice, limits)) {
    widenChannelRanges({ values: reader.read(rectangle), start }, slice.layout, ranges);
    yield 0;
  }
  return ranges;
}

/** Rounds scales to the type that they are written in, in place and as what is to be written. */
function roundScales({ scales }: AffineParameters, type: FloatType): ArrayBufferView {
  const converted = convertScales(scales, type);
  if (converted instanceof Float16Array) scales.set(converted);
  else if (converted instanceof Uint16Array) bfloat16ToFloat32(converted, scales);
  return converted;
}

function findRejection(
  { notFinite }: ChannelRanges,
  { scales }: AffineParameters,
): string | undefined {
  if (notFinite) return "holds values that are not finite";
  return scales.includes(0) ? "holds values too small for a half-precision scale" : undefined;
}

function* quantizeTiles(
  { task, reader, output, limits, sums, meanErrors }: SliceContext,
  slice: ChannelSlice,
  parameters: AffineParameters,
): Generator<number> {
  const { elements, sourceBytes, outputs } = task;
  const inputs = task.bias?.inputs;
  const into = new Int8Array(Math.min(limits.values, elements));
  for (const { rectangle, start } of sliceTiles(slice, limits)) {
    const { start: first, rows, columns, pitch } = rectangle;
    const values = reader.read(rectangle);
    const part = into.subarray(0, values.length);
    quantizeLinear({ values, start }, { layout: slice.layout, parameters }, part, sums);
    for (let row = 0; row < rows; row++) {
      const content = part.subarray(row * columns, (row + 1) * columns);
      output.write(outputs.quantizedValues, content, first + row * pitch);
      if (inputs === undefined) continue;
      const exact = values.subarray(row * columns, (row + 1) * columns);
      const rounded = { codes: content, scales: parameters.scales, ...slice };
      addMeanErrors({ values: exact, start: first + row * pitch }, rounded, inputs, meanErrors);
    }
    yield (values.length / elements) * sourceBytes;
  }
  releaseBuffers(into);
}

function writeParameters(
  { task: { channels, outputs }, output }: SliceContext,
  { matrix, firstChannel, layout }: ChannelSlice,
  { scales, zeroPoints }: { scales: ArrayBufferView; zeroPoints: Int8Array | Uint8Array },
): void {
  const first = matrix * channels + firstChannel;
  const scaleBytes = scales.byteLength / layout.channels;
  output.write(outputs.scales, scales, first * scaleBytes);
  if (outputs.zeroPoints !== undefined) output.write(outputs.zeroPoints, zeroPoints, first);
}

interface Bias {
  readonly numbers: Float32Array;
  readonly inputScale: number | undefined;
}

function readBias({ source, elements, inputScale }: ProductBias): Bias {
  if (source === undefined) return { numbers: new Float32Array(elements), inputScale };
  using reader = new SourceReader({ source, sourceType: "float32" });
  const row = { start: 0, rows: 1, columns: elements, pitch: elements };
  return { numbers: reader.read(row).slice(), inputScale };
}

/** Largest code of a bias: sums of products are added to it. */
const largestBias = 2 ** 30;

/**
 * A scale that is so small that the bias has no code in int32 is enlarged. Values that are all 0 have
 * any scale: the bias of theirs has most digits with that one.
 * @returns why the weight cannot have codes: one scale of all outputs would ruin those with small
 * numbers
 */
function fitToBias(
  { scales }: AffineParameters,
  { min, max }: ChannelRanges,
  bias: Bias,
  slice: ChannelSlice,
): string | undefined {
  const { inputScale, numbers } = bias;
  if (inputScale === undefined) return undefined;
  if (!numbers.every(Number.isFinite)) return "is beside a bias that is not finite";
  for (const { number, scale } of biasChannels(scales, bias, slice)) {
    const least = Math.abs(number) / inputScale / largestBias;
    const isZero = at(min, scale) === 0 && at(max, scale) === 0;
    const isOwn = hasOwnScales(scales, slice) || numbers.length === 1;
    const isSmall = at(scales, scale) < least;
    if (isSmall && !isOwn && !isZero) return "has one scale, which is too small for its bias";
    if (Math.fround(least) > 0 && (isSmall || (isZero && isOwn))) scales[scale] = least;
  }
  return undefined;
}

/** Whether each output has a scale. */
function hasOwnScales(scales: Float32Array, { firstChannel }: ChannelSlice): boolean {
  return scales.length > 1 || firstChannel > 0;
}

/** Each number of the bias that is of a slice, and the position of its scale there. */
function* biasChannels(
  scales: Float32Array,
  { numbers }: Pick<Bias, "numbers">,
  slice: ChannelSlice,
) {
  const { firstChannel } = slice;
  const isVector = hasOwnScales(scales, slice);
  const end = isVector ? firstChannel + scales.length : numbers.length;
  for (let channel = firstChannel; channel < end; channel++) {
    yield { number: at(numbers, channel), scale: isVector ? channel - firstChannel : 0 };
  }
}

function writeBias(
  { task: { outputs }, output, meanErrors }: SliceContext,
  slice: ChannelSlice,
  { scales, inputScale, numbers: exact }: Bias & { readonly scales: Float32Array },
): void {
  const { biasValues, biasScales } = outputs;
  const offset = slice.firstChannel * 4;
  const numbers = exact.map((number, channel) => number - at(meanErrors, channel));
  const corrected = [...biasChannels(scales, { numbers }, slice)];
  if (biasValues === undefined) return;
  if (inputScale === undefined) {
    output.write(
      biasValues,
      Float32Array.from(corrected, ({ number }) => number),
      offset,
    );
    return;
  }
  const products = scales.map((scale) => scale * inputScale);
  const codes = corrected.map(({ number, scale }) => Math.round(number / at(products, scale)));
  output.write(biasValues, Int32Array.from(codes), offset);
  if (biasScales !== undefined) output.write(biasScales, products, offset);
}

/** What the quantization of a slice reads and writes. */
interface SliceContext {
  readonly task: AffineTask;
  readonly reader: SourceReader;
  readonly output: OutputWriter;
  readonly limits: TileLimits;
  readonly sums: ErrorSums;
  /** What rounding the values so far changes in each output on average. */
  readonly meanErrors: Float64Array;
}
