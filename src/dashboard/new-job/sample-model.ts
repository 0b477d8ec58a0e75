import { concatBytes, lengthPrefix, varintBytes, wireType } from "../../model-files/wire-format.ts";

/** Layers of a small classifier, from the pixels of a digit to its ten classes. */
const layers = [784, 128, 64, 10] as const;
const opset = 17;
const irVersion = 8;
const floatType = 1;

/** A small ONNX model to try the service with: its weights are generated, and always the same. */
export function makeSampleModel(): File {
  return new File([encodeSampleModel()], "sample-classifier.onnx");
}

function encodeSampleModel(): Uint8Array<ArrayBuffer> {
  const last = layers.length - 1;
  const pairs = layers.slice(0, last).map((inputs, index) => [inputs, layers[index + 1] ?? 0]);
  const weights = pairs.flatMap(([inputs = 0, outputs = 0], index) => [
    tensor(`weight${index}`, [inputs, outputs]),
    tensor(`bias${index}`, [outputs]),
  ]);
  const nodes = pairs.flatMap((_, index) => {
    const isLast = index === last - 1;
    const from = index === 0 ? "pixels" : `hidden${index - 1}`;
    const added = isLast ? "logits" : `sum${index}`;
    return [
      node("MatMul", [from, `weight${index}`], `product${index}`),
      node("Add", [`product${index}`, `bias${index}`], added),
      ...(isLast ? [] : [node("Relu", [added], `hidden${index}`)]),
    ];
  });
  const graph = [
    ...nodes.map((each) => part(1, each)),
    text(2, "sample"),
    ...weights.map((each) => part(5, each)),
    part(11, valueInfo("pixels", [1, layers[0]])),
    part(12, valueInfo("logits", [1, layers[last] ?? 0])),
  ];
  const model = [number(1, irVersion), part(7, concatBytes(graph)), part(8, number(2, opset))];
  return concatBytes(model);
}

function node(type: string, inputs: readonly string[], output: string): Uint8Array {
  const names = inputs.map((input) => text(1, input));
  return concatBytes([...names, text(2, output), text(3, output), text(4, type)]);
}

function tensor(name: string, sizes: readonly number[]): Uint8Array {
  const count = sizes.reduce((product, size) => product * size, 1);
  const scale = 1 / Math.sqrt(sizes[0] ?? 1);
  const values = Float32Array.from({ length: count }, (_, index) => scale * generate(index));
  const dims = sizes.map((size) => number(1, size));
  const bytes = new Uint8Array(values.buffer);
  return concatBytes([...dims, number(2, floatType), text(8, name), part(9, bytes)]);
}

/** Values that are distributed about as weights are: a sum of uniform ones. */
function generate(index: number): number {
  return [1, 2, 3].reduce((sum, salt) => sum + hash(4 * index + salt), 0);
}

/** From -1 to 1, the same for the same seed. */
function hash(seed: number): number {
  let mixed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 31 - 1;
}

function valueInfo(name: string, sizes: readonly number[]): Uint8Array {
  const shape = concatBytes(sizes.map((size) => part(1, number(1, size))));
  const tensorType = concatBytes([number(1, floatType), part(2, shape)]);
  return concatBytes([text(1, name), part(2, part(1, tensorType))]);
}

function text(field: number, value: string): Uint8Array {
  return part(field, new TextEncoder().encode(value));
}

/** A field that has a length, as protobuf writes it. */
function part(field: number, content: Uint8Array): Uint8Array {
  return concatBytes([lengthPrefix(field, content.length), content]);
}

function number(field: number, value: number): Uint8Array {
  return concatBytes([varintBytes(8 * field + wireType.varint), varintBytes(value)]);
}
