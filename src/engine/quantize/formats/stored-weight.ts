import { create } from "@bufbuild/protobuf";
import { countElements } from "../../onnx/tensor-shape.ts";
import { intAttributes, integerListAttribute, nodeWith } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType, TensorProtoSchema } from "../../onnx/onnx_pb.js";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import type { Weight, WeightConsumer } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription } from "../graph-rewrite.ts";
import type { AxisRange } from "./consumer-matrix.ts";

/** A weight that is stored quantized, while the nodes that take it are written. */
export class StoredWeight {
  readonly rewrite: GraphRewrite;
  readonly weight: Weight;
  readonly quantizedValues: string;
  readonly scales: string;
  /** Absent where all are 0. */
  readonly zeroPoints: string | undefined;
  /** The int32 bias of the operator that takes the weight by codes, dequantized. */
  readonly bias: string | undefined;
  readonly #derived = new Map<string, string>();
  readonly #copiedViews = new Map<NodeProto, readonly string[]>();

  constructor(
    rewrite: GraphRewrite,
    weight: Weight,
    names: {
      quantizedValues: string;
      scales: string;
      zeroPoints: string | undefined;
      bias: string | undefined;
    },
  ) {
    this.rewrite = rewrite;
    this.weight = weight;
    this.quantizedValues = names.quantizedValues;
    this.scales = names.scales;
    this.zeroPoints = names.zeroPoints;
    this.bias = names.bias;
  }

  /** Adds a node before all others of the weight's body. @returns the name of its output */
  addNode(part: string, node: Omit<NodeDescription, "output">): string {
    const output = this.rewrite.names.allocate(`${this.weight.name}_${part}`);
    this.rewrite.prependNode(this.weight.scope.body, { ...node, output: [output] });
    return output;
  }

  /** Adds the node whose output takes the weight's own name. */
  addLastNode(node: Omit<NodeDescription, "output">): void {
    this.rewrite.prependNode(this.weight.scope.body, { ...node, output: [this.weight.name] });
  }

  cast(value: string, to: number): string {
    return this.#derive(`${value}\0cast${to}`, () =>
      this.addNode("cast", { opType: "Cast", input: [value], attribute: intAttributes({ to }) }),
    );
  }

  /** Scales of the type that a consumer computes in. */
  castScales(elementType: number): string {
    const isSame = elementType === this.weight.tensor.dataType;
    return isSame ? this.scales : this.cast(this.scales, elementType);
  }

  reshape(value: string, shape: readonly number[]): string {
    return this.#derive(`${value}\0${shape.join()}`, () =>
      this.addNode("reshaped", { opType: "Reshape", input: [value, this.integers(shape)] }),
    );
  }

  /** A range of an axis. */
  slice(value: string, axis: number, { start, size }: { start: number; size: number }): string {
    return this.#derive(`${value}\0${axis},${start},${size}`, () => {
      const bounds = [[start], [start + size], [axis]].map((each) => this.integers(each));
      return this.addNode("slice", { opType: "Slice", input: [value, ...bounds] });
    });
  }

  /** The part of a tensor, with an entry or row for each output, that a consumer takes. */
  sliceOutputs(value: string, { source, start, size }: AxisRange): string {
    const all = Number(this.weight.tensor.dims[source]);
    return size === all ? value : this.slice(value, 0, { start, size });
  }

  /** By default with the axes in reverse. */
  transpose(value: string, axes: readonly number[] = []): string {
    const attribute = axes.length === 0 ? [] : [integerListAttribute("perm", axes)];
    return this.#derive(`${value}\0transposed${axes.join()}`, () =>
      this.addNode("transposed", { opType: "Transpose", input: [value], attribute }),
    );
  }

  integers(values: readonly number[]): string {
    return this.#derive(`\0integers${values.join()}`, () => {
      const rawData = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
      return this.#addConstant("integers", {
        dims: [BigInt(values.length)],
        dataType: DataType.INT64,
        rawData,
      });
    });
  }

  float(value: number): string {
    return this.#derive(`\0float${value}`, () => {
      const rawData = new Uint8Array(Float32Array.of(value).buffer);
      return this.#addConstant("number", { dims: [], dataType: DataType.FLOAT, rawData });
    });
  }

  /** Zero points of symmetric int8 values, for operators that need some. */
  zeros(dims: readonly number[]): string {
    return this.#derive(`\0zeros${dims.join()}`, () =>
      this.#addConstant("zero_point", {
        dims: dims.map(BigInt),
        dataType: DataType.INT8,
        rawData: new Uint8Array(countElements(dims)),
      }),
    );
  }

  byte(value: number): string {
    return this.#derive(`\0byte${value}`, () =>
      this.#addConstant("byte", {
        dims: [],
        dataType: DataType.UINT8,
        rawData: Uint8Array.of(value),
      }),
    );
  }

  /** What the nodes between the weight and a consumer make of the quantized values. */
  copyView({ view }: WeightConsumer): string {
    let value = this.quantizedValues;
    for (const { node, output, scope } of view.nodes) {
      if (node.opType === "Cast" || node.opType === "Identity") continue;
      const outputs = this.#copiedViews.get(node) ?? this.#copyViewNode(node, value, scope.body);
      this.#copiedViews.set(node, outputs);
      value = outputs[output] ?? value;
    }
    return value;
  }

  #copyViewNode(node: NodeProto, value: string, body: Weight["scope"]["body"]): string[] {
    const output = node.output.map((name) => this.rewrite.names.allocate(`${name}_quantized`));
    const copy = nodeWith(node, { input: node.input.with(0, value), output });
    copy.name = this.rewrite.names.allocate(`${node.name}_quantized`);
    this.rewrite.prependCopy(body, copy);
    return output;
  }

  #derive(key: string, add: () => string): string {
    const known = this.#derived.get(key);
    if (known !== undefined) return known;
    const name = add();
    this.#derived.set(key, name);
    return name;
  }

  #addConstant(
    part: string,
    content: { dims: bigint[]; dataType: number; rawData: Uint8Array },
  ): string {
    const name = this.rewrite.names.allocate(`${this.weight.name}_${part}`);
    const tensor = create(TensorProtoSchema, { name, ...content });
    this.rewrite.addConstantTensor(this.weight.scope.body, tensor);
    return name;
  }
}
