import { isAttributeSet, isRowGather, operatorName } from "../channel-axis.ts";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import { Obstacle } from "../obstacle.ts";

/** An axis of a weight, and the range of it that a consumer takes. */
export interface AxisRange {
  readonly source: number;
  readonly start: number;
  readonly size: number;
}

/** How a product takes a weight: as a matrix of K inputs and N outputs. */
interface ProductMatrix {
  readonly k: AxisRange;
  readonly n: AxisRange;
  /** Whether the consumer takes N rows of K values. */
  readonly isTransposed: boolean;
}

/** @returns the matrix that a product takes, or why a consumer takes none */
export function findProductMatrix(consumer: WeightConsumer): ProductMatrix | Obstacle {
  const { node, input, view } = consumer;
  const operator = operatorName(node);
  if (!productOperators.has(operator)) {
    return new Obstacle(`is used by ${operator}, which is not a product of matrices`);
  }
  if (input !== 1) {
    const which = `input ${input} of ${operator}`;
    return new Obstacle(`is ${which}, and only input 1 can be in this form`);
  }
  const isTransposed = operator !== "MatMul" && isAttributeSet(node, "transB");
  if (view.axes?.length !== 2 || view.isJoined) {
    const rank = view.axes?.length;
    return rank === undefined || view.isJoined
      ? new Obstacle(`is rearranged for ${operator}`)
      : new Obstacle(`has ${rank} dimensions, and products take matrices`);
  }
  const [first, second] = view.axes.map(toAxisRange);
  if (first === undefined || second === undefined) {
    return new Obstacle(`is not a matrix for ${operator}`);
  }
  return isTransposed
    ? { k: second, n: first, isTransposed }
    : { k: first, n: second, isTransposed };
}

export function requireProductMatrix(consumer: WeightConsumer): ProductMatrix {
  const matrix = findProductMatrix(consumer);
  if (matrix instanceof Obstacle) throw new TypeError(`A planned product ${matrix.reason}`);
  return matrix;
}

/** Operators that replaceMatrixProduct has nodes for. */
const replaceableOperators: ReadonlySet<string> = new Set(["MatMul", "Gemm"]);

const productOperators: ReadonlySet<string> = new Set([
  ...replaceableOperators,
  "com.microsoft:FusedMatMul",
  "com.microsoft:FusedGemm",
]);

/** The matrix of a product that can be replaced by one of quantized values, or why it cannot. */
export function findReplaceableProduct(consumer: WeightConsumer): ProductMatrix | Obstacle {
  const operator = operatorName(consumer.node);
  return replaceableOperators.has(operator)
    ? findProductMatrix(consumer)
    : new Obstacle(`is used by ${operator}, which no product of quantized values replaces`);
}

function toAxisRange(axis: {
  source: number | undefined;
  start: number;
  size: number;
}): AxisRange | undefined {
  const { source, ...range } = axis;
  return source === undefined ? undefined : { source, ...range };
}

/**
 * The axes of a weight along which a consumer gathers whole rows, and along which their values lie:
 * past a Transpose they are another way round. Undefined for other consumers.
 */
export function findGatheredAxes(
  weight: Weight,
  consumer: WeightConsumer,
): { readonly rows: number; readonly values: number } | undefined {
  const { view } = consumer;
  const dims = weightDims(weight);
  const [rows, values] = view.axes ?? [];
  if (rows?.source === undefined || values?.source === undefined) return undefined;
  const isWhole =
    view.axes?.length === 2 && rows.size * values.size === countElements(dims) && !view.isJoined;
  if (!isWhole || !isRowGather(consumer, 2)) return undefined;
  return { rows: rows.source, values: values.source };
}

/** Whether a consumer gathers whole rows of a weight as it is stored. */
export function gathersRows({ tensor }: Weight, consumer: WeightConsumer): boolean {
  const { view } = consumer;
  const isDirect =
    view.axes?.length === tensor.dims.length &&
    !view.isJoined &&
    view.axes.every(
      ({ source, start, size }, axis) =>
        source === axis && start === 0 && size === Number(tensor.dims[axis]),
    );
  return isDirect && isRowGather(consumer, tensor.dims.length);
}
