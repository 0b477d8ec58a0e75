import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorMessage } from "../../src/log/error-message.ts";
import { installOnce } from "../../test/support/prepare-python.ts";
import { benchCache } from "../engine/bench-cache.ts";

const exec = promisify(execFile);
const requirements = join(import.meta.dirname, "requirements.txt");
/** Packages, and their archives while they are installed. */
const neededBytes = 8e9;

/**
 * Installs ONNX Runtime GenAI's model builder at the first use.
 * @returns the interpreter that has it; undefined where it cannot be had, which is said
 */
export async function prepareBuilder(): Promise<string | undefined> {
  const hash = createHash("sha256").update(await readFile(requirements));
  const environment = join(benchCache, `genai-builder-${hash.digest("hex").slice(0, 12)}`);
  try {
    await installOnce(environment, async () => install(environment));
    return join(environment, "bin", "python3");
  } catch (error) {
    await rm(environment, { recursive: true, force: true });
    const peer = "ONNX Runtime GenAI's builder is not measured, since it cannot be installed";
    process.stdout.write(`${peer}: ${errorMessage(error)}\n`);
    return undefined;
  }
}

async function install(environment: string): Promise<void> {
  await mkdir(benchCache, { recursive: true });
  const { bavail, bsize } = await statfs(benchCache);
  if (bavail * bsize < neededBytes) {
    throw new Error(`${benchCache} needs ${neededBytes / 1e9} GB of free disk`);
  }
  process.stdout.write(
    "Installing ONNX Runtime GenAI's builder with torch from PyPI, 5 GB on the disk\n",
  );
  await exec("python3", ["-m", "venv", environment]);
  const options = ["--quiet", "--no-cache-dir", "--no-deps", "-r", requirements];
  await exec(join(environment, "bin", "python3"), ["-m", "pip", "install", ...options]);
}
