import { float32ToBfloat16 } from "../kernels/convert-bfloat16.ts";
import type { FloatType } from "./weight-task.ts";

/** Scales as they are written, in the type that the plan gives them. */
export function convertScales(scales: Float32Array, type: FloatType): ArrayBufferView {
  switch (type) {
    case "float32":
      return scales;
    case "float16":
      return Float16Array.from(scales);
    case "bfloat16":
      return float32ToBfloat16(scales);
  }
}
