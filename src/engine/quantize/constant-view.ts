import { countElements } from "../onnx/tensor-shape.ts";
import { floatTypes } from "../onnx/element-type.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { Scope } from "./graph-index.ts";

/** An axis of a view: a range of an axis of the constant, or an added axis of size 1. */
interface ViewAxis {
  readonly source: number | undefined;
  readonly start: number;
  readonly size: number;
}

/** A node of a view, and which of its outputs the view goes on with. */
interface ViewNode {
  readonly node: NodeProto;
  readonly output: number;
  readonly scope: Scope;
}

/** What nodes such as Transpose and Slice make of a constant, without a copy of it. */
export interface ConstantView {
  readonly elementType: number;
  /** Undefined where elements move in another way than by whole axes. */
  readonly axes: readonly ViewAxis[] | undefined;
  /** Whether the value has elements of other constants too. */
  readonly isJoined: boolean;
  /** Between the constant and the value, in order. */
  readonly nodes: readonly ViewNode[];
}

interface ViewStep {
  readonly node: NodeProto;
  readonly scope: Scope;
  /** Input of the node that the view is. */
  readonly input: number;
  /** Output of the node that is asked for. */
  readonly output: number;
  /**
   * Integers of a constant input, or of the attribute that older versions have instead, or what
   * stands for both where there is neither; undefined where they are computed.
   */
  readonly findIntegers: (
    input: number,
    attribute: string,
    absent?: readonly number[],
  ) => readonly number[] | undefined;
}

type ViewRule = (axes: readonly ViewAxis[], step: ViewStep) => readonly ViewAxis[] | undefined;

export function identityView(dims: readonly number[], elementType: number): ConstantView {
  const axes = dims.map((size, source) => ({ source, start: 0, size }));
  return { elementType, axes, isJoined: false, nodes: [] };
}

/** @returns the view that an output of a node is, or undefined where the node computes anything */
export function extendView(view: ConstantView, step: ViewStep): ConstantView | undefined {
  const { node, input, output, scope } = step;
  const rule = node.domain === "" || node.domain === "ai.onnx" ? rules[node.opType] : undefined;
  if (rule === undefined || (input !== 0 && node.opType !== "Concat")) return undefined;
  const elementType =
    node.opType === "Cast" ? Number(findAttribute(node, "to")?.i ?? 0n) : view.elementType;
  if (!floatTypes.has(elementType)) return undefined;
  const axes = view.axes === undefined ? undefined : rule(view.axes, step);
  const isValid = axes?.every(({ size }) => Number.isSafeInteger(size) && size > 0) ?? false;
  return {
    elementType,
    axes: isValid ? axes : undefined,
    isJoined: view.isJoined || node.opType === "Concat",
    nodes: [...view.nodes, { node, output, scope }],
  };
}

const rules: Readonly<Record<string, ViewRule>> = {
  Identity: (axes) => axes,
  Cast: (axes) => axes,
  Transpose: (axes, { node }) => {
    const given = findAttribute(node, "perm")?.ints.map(Number);
    const order = given ?? [...axes.keys()].toReversed();
    const isPermutation = new Set(order).size === axes.length && order.length === axes.length;
    const moved = order.flatMap((axis) => axes[axis] ?? []);
    return isPermutation && moved.length === axes.length ? moved : undefined;
  },
  Unsqueeze: (axes, { findIntegers }) => {
    const added = findIntegers(1, "axes");
    if (added === undefined) return undefined;
    const rank = axes.length + added.length;
    const positions = new Set(added.map((axis) => (axis < 0 ? axis + rank : axis)));
    const rest = [...axes];
    const addedAxis = { source: undefined, start: 0, size: 1 };
    return Array.from({ length: rank }, (_, axis) =>
      positions.has(axis) ? addedAxis : (rest.shift() ?? addedAxis),
    );
  },
  Squeeze: (axes, { findIntegers }) => {
    const ones = axes.flatMap(({ size }, axis) => (size === 1 ? [axis] : []));
    const given = findIntegers(1, "axes", ones);
    if (given === undefined) return undefined;
    const removed = new Set(given.map((axis) => (axis < 0 ? axis + axes.length : axis)));
    return axes.filter((_, axis) => !removed.has(axis));
  },
  Reshape: (axes, { node, findIntegers }) => {
    const shape = findIntegers(1, "shape");
    if (shape === undefined || (findAttribute(node, "allowzero")?.i ?? 0n) !== 0n) return undefined;
    return reshapeAxes(axes, shape);
  },
  Flatten: (axes, { node }) => {
    const given = Number(findAttribute(node, "axis")?.i ?? 1n);
    const axis = given < 0 ? given + axes.length : given;
    const sizes = axes.map(({ size }) => size);
    return reshapeAxes(axes, [
      countElements(sizes.slice(0, axis)),
      countElements(sizes.slice(axis)),
    ]);
  },
  Slice: (axes, { findIntegers }) => {
    const [starts, ends] = [findIntegers(1, "starts"), findIntegers(2, "ends")];
    if (starts === undefined || ends === undefined) return undefined;
    const steps = findIntegers(4, "steps", []);
    if (steps?.every((step) => step === 1) !== true) return undefined;
    const sliced = findIntegers(3, "axes", [...starts.keys()]);
    if (sliced === undefined) return undefined;
    const result = [...axes];
    for (const [index, given] of sliced.entries()) {
      const axis = given < 0 ? given + axes.length : given;
      const [start, end] = [starts[index], ends[index]];
      if (start === undefined || end === undefined) return undefined;
      const range = sliceAxis(result[axis], start, end);
      if (range === undefined) return undefined;
      result[axis] = range;
    }
    return result;
  },
  Split: (axes, { node, output, findIntegers }) => {
    const given = Number(findAttribute(node, "axis")?.i ?? 0n);
    const axis = given < 0 ? given + axes.length : given;
    const size = axes[axis]?.size ?? 0;
    const even = Math.ceil(size / node.output.length);
    const sizes = findIntegers(
      1,
      "split",
      node.output.map(() => even),
    );
    if (sizes === undefined) return undefined;
    const start = sizes.slice(0, output).reduce((sum, part) => sum + part, 0);
    const range = sliceAxis(axes[axis], start, Math.min(size, start + (sizes[output] ?? 0)));
    return range === undefined ? undefined : axes.with(axis, range);
  },
  Concat: (axes) => axes,
};

/** Keeps axes where a new shape only adds or removes axes of size 1. */
function reshapeAxes(
  axes: readonly ViewAxis[],
  shape: readonly number[],
): readonly ViewAxis[] | undefined {
  const sizes = axes.map(({ size }) => size);
  const known = shape.map((size, axis) => (size === 0 ? (sizes[axis] ?? 0) : size));
  const open = countElements(sizes) / countElements(known.filter((size) => size !== -1));
  const wanted = known.map((size) => (size === -1 ? open : size));
  const left = axes.filter(({ size }) => size !== 1);
  const result = wanted.map((size) =>
    size === 1 ? { source: undefined, start: 0, size } : left.shift(),
  );
  const isKept = left.length === 0 && result.every((axis, at) => axis?.size === wanted[at]);
  return isKept ? result.flatMap((axis) => axis ?? []) : undefined;
}

/** A range of an axis; bounds count from its end where they are negative. */
function sliceAxis(axis: ViewAxis | undefined, from: number, to: number): ViewAxis | undefined {
  if (axis === undefined) return undefined;
  const { source, start, size } = axis;
  const clamp = (bound: number) => Math.min(size, Math.max(0, bound < 0 ? bound + size : bound));
  const first = clamp(from);
  return { source, start: start + first, size: clamp(to) - first };
}
