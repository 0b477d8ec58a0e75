import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { installOnce } from "../../test/support/prepare-python.ts";
import { benchCache } from "../engine/bench-cache.ts";

const exec = promisify(execFile);

const llamaCpp = "llama-cpp-python==0.3.36";
/** The quantizer runs on the processor and by a call; what else the package has takes time to build. */
const cmakeArguments = [
  "LLAVA_BUILD",
  "LLAMA_BUILD_TESTS",
  "LLAMA_BUILD_EXAMPLES",
  "LLAMA_BUILD_TOOLS",
  "LLAMA_BUILD_SERVER",
  "GGML_OPENMP",
].map((option) => `-D${option}=OFF`);

/**
 * Builds llama.cpp from the sources of its Python package at the first use.
 * @returns the interpreter that has it, gguf and numpy
 * @throws Error if there is no C++ compiler
 */
export async function prepareLlamaCpp(): Promise<string> {
  const environment = join(benchCache, llamaCpp.replace("==", "-"));
  const interpreter = join(environment, "bin", "python3");
  await installOnce(environment, async () => {
    process.stdout.write(`Building ${llamaCpp}, which takes 20 to 40 minutes of one core\n`);
    await exec("python3", ["-m", "venv", environment]);
    const packages = ["--no-binary", "llama-cpp-python", llamaCpp, "gguf==0.19.0"];
    await exec(interpreter, ["-m", "pip", "install", "--quiet", ...packages], {
      env: {
        ...process.env,
        CMAKE_ARGS: cmakeArguments.join(" "),
        CMAKE_BUILD_PARALLEL_LEVEL: "1",
      },
      maxBuffer: 64 * 1024 * 1024,
    });
  });
  return interpreter;
}
