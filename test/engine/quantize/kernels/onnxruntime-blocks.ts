import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  QuantizedBlocks,
  BlockFormat,
  MatrixShape,
} from "../../../../src/engine/quantize/kernels/block-format.ts";
import { runPython } from "../../../support/python.ts";

export interface BlockCase {
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
  readonly values: Float32Array;
  /** The MatMulNBits layout, or that of a blocked DequantizeLinear. */
  readonly layout: "matmul" | "linear";
}

const program = `
import json, os, sys
import numpy as np
import onnxruntime.capi._pybind_state as native
folder = sys.argv[1]
for index, case in enumerate(json.load(open(os.path.join(folder, "cases.json")))):
    k, n, bits, size, symmetric = case["k"], case["n"], case["bits"], case["blockSize"], case["symmetric"]
    weight = np.fromfile(os.path.join(folder, f"{index}.bin"), dtype=np.float32)
    weight = weight.reshape(k, n) if case["order"] == "kn" else np.ascontiguousarray(weight.reshape(n, k).T)
    blocks = -(-k // size)
    if case["layout"] == "linear":
        codes = np.zeros((k * n + 1) // 2, np.uint8)
        points = np.zeros((blocks * n + 1) // 2, np.uint8)
        scales = np.zeros((blocks, n), np.float32)
        native.quantize_qdq_matmul_4bits(codes, weight, scales, points, size, n, k, symmetric)
    else:
        codes = np.zeros((n, blocks, size * bits // 8), np.uint8)
        points = np.zeros((n, -(-blocks * bits // 8)), np.uint8)
        scales = np.zeros((n, blocks), np.float32)
        padded = np.pad(weight, ((0, blocks * size - k), (0, 0)))
        quantize = native.quantize_matmul_4bits if bits == 4 else native.quantize_matmul_8bits
        quantize(codes, padded, scales, points, size, n, k, symmetric)
    with open(os.path.join(folder, f"{index}.out"), "wb") as out:
        out.write(codes.tobytes() + scales.tobytes() + (b"" if symmetric else points.tobytes()))
`;

/** Results of ONNX Runtime's own quantizer: values, scales and zero points of each case. */
export async function onnxruntimeBlocks(cases: readonly BlockCase[]): Promise<Uint8Array[]> {
  const folder = await mkdtemp(join(tmpdir(), "blocks-"));
  try {
    const described = cases.map(({ shape, format, layout }) => ({ ...shape, ...format, layout }));
    await writeFile(join(folder, "cases.json"), JSON.stringify(described));
    for (const [index, { values }] of cases.entries())
      await writeFile(join(folder, `${index}.bin`), values);
    await runPython(program, [folder]);
    return await Promise.all(
      cases.map(async (_, index) => new Uint8Array(await readFile(join(folder, `${index}.out`)))),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function flatten({ quantizedValues, scales, zeroPoints }: QuantizedBlocks): Uint8Array {
  const parts = [quantizedValues, scales, zeroPoints].map(
    (part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength),
  );
  return new Uint8Array(Buffer.concat(parts));
}
