const onnxHeader = Buffer.from([0x08, 0x08]);

function field(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

/** A protobuf of an ONNX model with an empty graph. */
export function modelOfOpset(opset: number): Buffer {
  return Buffer.concat([
    onnxHeader,
    field(7, field(2, Buffer.from("g"))),
    field(8, Buffer.from([0x10, opset])),
  ]);
}

/** A model that multiplies its input with a weight of 32 × 32 floats in another file. */
export function modelWithExternalData(location: string): Buffer {
  const text = (value: string) => Buffer.from(value);
  const entry = Buffer.concat([field(1, text("location")), field(2, text(location))]);
  const weight = Buffer.concat([
    Buffer.from([0x08, 32, 0x08, 32, 0x10, 1]),
    field(8, text("w")),
    field(13, entry),
    Buffer.from([14 << 3, 1]),
  ]);
  const node = Buffer.concat([
    field(1, text("x")),
    field(1, text("w")),
    field(2, text("y")),
    field(4, text("MatMul")),
  ]);
  const value = (name: string) => {
    const dimension = field(1, Buffer.from([0x08, 32]));
    const tensor = Buffer.concat([
      Buffer.from([0x08, 1]),
      field(2, Buffer.concat([dimension, dimension])),
    ]);
    return Buffer.concat([field(1, text(name)), field(2, field(1, tensor))]);
  };
  const graph = [
    field(1, node),
    field(2, text("g")),
    field(5, weight),
    field(11, value("x")),
    field(12, value("y")),
  ];
  const body = Buffer.concat(graph);
  const length = Buffer.from([0x3a, (body.length & 0x7f) | 0x80, body.length >> 7]);
  return Buffer.concat([onnxHeader, length, body, field(8, Buffer.from([0x10, 13]))]);
}
