import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { countElements } from "../onnx/count-elements.ts";
import { tensorDims } from "./weight-dims.ts";

/** Where consecutive indices of each axis are, in elements. */
interface StridedLayout {
  readonly offset: number;
  readonly strides: readonly number[];
}

/** A result that is put together from rearranged tensors. */
export interface Rearrangement {
  readonly dims: readonly number[];
  readonly parts: readonly {
    readonly tensor: TensorProto;
    readonly sizes: readonly number[];
    readonly from: StridedLayout;
    readonly to: StridedLayout;
  }[];
}

interface RearrangementOperands {
  readonly node: NodeProto;
  readonly tensors: readonly (TensorProto | undefined)[];
  /** Integers of a constant input, or of the attribute that older versions have instead. */
  readonly findIntegers: (input: number, attribute: string) => readonly number[] | undefined;
}

/**
 * Describes what a node that only rearranges elements does to its constant inputs.
 * @returns undefined for other nodes and for what is not valid
 */
export function planRearrangement(
  node: NodeProto,
  tensors: RearrangementOperands["tensors"],
  integers: (tensor: TensorProto) => number[],
): Rearrangement | undefined {
  const findIntegers = (input: number, attribute: string) => {
    const tensor = tensors[input];
    if (tensor !== undefined) return integers(tensor);
    return findAttribute(node, attribute)?.ints.map(Number);
  };
  const rearrangement = rearrangements[node.opType]?.({ node, tensors, findIntegers });
  if (rearrangement === undefined || !staysWithinTensors(rearrangement)) return undefined;
  return rearrangement;
}

const rearrangements: Readonly<
  Record<string, (operands: RearrangementOperands) => Rearrangement | undefined>
> = {
  Unsqueeze: ({ tensors: [tensor], findIntegers }) => {
    const axes = findIntegers(1, "axes");
    if (tensor === undefined || axes === undefined) return undefined;
    const rank = tensor.dims.length + axes.length;
    const added = new Set(axes.map((axis) => (axis < 0 ? axis + rank : axis)));
    const rest = tensorDims(tensor);
    return reshapedTensor(
      tensor,
      Array.from({ length: rank }, (_, axis) => (added.has(axis) ? 1 : (rest.shift() ?? 1))),
    );
  },
  Squeeze: ({ tensors: [tensor], findIntegers }) => {
    if (tensor === undefined) return undefined;
    const dims = tensorDims(tensor);
    const axes = findIntegers(1, "axes") ?? dims.flatMap((dim, axis) => (dim === 1 ? [axis] : []));
    const removed = new Set(axes.map((axis) => (axis < 0 ? axis + dims.length : axis)));
    return reshapedTensor(
      tensor,
      dims.filter((_, axis) => !removed.has(axis)),
    );
  },
  Reshape: ({ node, tensors: [tensor], findIntegers }) => {
    const wanted = findIntegers(1, "shape");
    if (
      tensor === undefined ||
      wanted === undefined ||
      (findAttribute(node, "allowzero")?.i ?? 0n) !== 0n
    )
      return undefined;
    const dims = tensorDims(tensor);
    const known = wanted.map((size, axis) => (size === 0 ? (dims[axis] ?? 0) : size));
    const open = countElements(dims) / countElements(known.filter((size) => size !== -1));
    return reshapedTensor(
      tensor,
      known.map((size) => (size === -1 ? open : size)),
    );
  },
  Transpose: ({ node, tensors: [tensor] }) => {
    if (tensor === undefined) return undefined;
    const dims = tensorDims(tensor);
    const given = findAttribute(node, "perm")?.ints.map(Number);
    const order = given ?? [...dims.keys()].toReversed();
    const strides = rowMajorStrides(dims);
    const sizes = order.map((axis) => dims[axis] ?? 0);
    const from = { offset: 0, strides: order.map((axis) => strides[axis] ?? 0) };
    return {
      dims: sizes,
      parts: [{ tensor, sizes, from, to: { offset: 0, strides: rowMajorStrides(sizes) } }],
    };
  },
  Concat: ({ node, tensors }) => {
    const parts = tensors.filter((tensor) => tensor !== undefined);
    const [first] = parts;
    const axisGiven = Number(findAttribute(node, "axis")?.i ?? 0n);
    if (first === undefined || parts.length < tensors.length) return undefined;
    const axis = axisGiven < 0 ? axisGiven + first.dims.length : axisGiven;
    const total = parts.reduce((sum, { dims }) => sum + Number(dims[axis] ?? 0n), 0);
    const dims = tensorDims(first).map((dim, index) => (index === axis ? total : dim));
    const strides = rowMajorStrides(dims);
    let done = 0;
    const moved = parts.map((tensor) => {
      const sizes = tensorDims(tensor);
      const to = { offset: done * (strides[axis] ?? 0), strides };
      done += sizes[axis] ?? 0;
      return { tensor, sizes, from: { offset: 0, strides: rowMajorStrides(sizes) }, to };
    });
    const isEven = parts.every(
      ({ dataType, dims: each }) => dataType === first.dataType && each.length === dims.length,
    );
    return isEven ? { dims, parts: moved } : undefined;
  },
  Slice: ({ tensors: [tensor], findIntegers }) => {
    const starts = findIntegers(1, "starts");
    const ends = findIntegers(2, "ends");
    if (tensor === undefined || starts === undefined || ends === undefined) return undefined;
    const dims = tensorDims(tensor);
    const axes = findIntegers(3, "axes") ?? [...starts.keys()];
    if (findIntegers(4, "steps")?.some((step) => step !== 1) === true) return undefined;
    const sizes = [...dims];
    let offset = 0;
    const strides = rowMajorStrides(dims);
    for (const [index, axisGiven] of axes.entries()) {
      const axis = axisGiven < 0 ? axisGiven + dims.length : axisGiven;
      const start = clampSliceBound(starts[index], dims[axis]);
      sizes[axis] = Math.max(0, clampSliceBound(ends[index], dims[axis]) - start);
      offset += start * (strides[axis] ?? 0);
    }
    const from = { offset, strides };
    return {
      dims: sizes,
      parts: [{ tensor, sizes, from, to: { offset: 0, strides: rowMajorStrides(sizes) } }],
    };
  },
};

/** A bound of Slice within an axis of that size. */
function clampSliceBound(at = 0, size = 0): number {
  return Math.min(size, Math.max(0, at < 0 ? at + size : at));
}

function reshapedTensor(tensor: TensorProto, dims: readonly number[]): Rearrangement {
  const sizes = [countElements(tensorDims(tensor))];
  const straight = { offset: 0, strides: [1] };
  return { dims, parts: [{ tensor, sizes, from: straight, to: straight }] };
}

function rowMajorStrides(dims: readonly number[]): number[] {
  return dims.map((_, axis) => countElements(dims.slice(axis + 1)));
}

/** Whether a rearrangement stays within its tensors and fills its result. */
function staysWithinTensors({ dims, parts }: Rearrangement): boolean {
  const total = parts.reduce((sum, { sizes }) => sum + countElements(sizes), 0);
  const lastIndex = ({ offset, strides }: StridedLayout, sizes: readonly number[]) =>
    sizes.reduce((sum, size, axis) => sum + (size - 1) * (strides[axis] ?? 0), offset);
  return (
    total === countElements(dims) &&
    dims.every((dim) => Number.isSafeInteger(dim) && dim > 0) &&
    parts.every(
      ({ tensor, sizes, from, to }) =>
        lastIndex(from, sizes) < countElements(tensorDims(tensor)) &&
        lastIndex(to, sizes) < countElements(dims),
    )
  );
}
