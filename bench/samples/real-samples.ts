import { execFile } from "node:child_process";
import { mkdir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { installOnce } from "../../test/support/prepare-python.ts";
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

/** Writes real data for a model; returns the file. */
export async function prepareRealSamples(
  kind: string,
  model: string,
  folder: string,
): Promise<string> {
  const { interpreter, speech } = await prepareTools();
  const output = join(folder, "real.npz");
  const script = join(import.meta.dirname, "real_samples.py");
  await exec(interpreter, [script, kind, model, output, speech]);
  return output;
}
