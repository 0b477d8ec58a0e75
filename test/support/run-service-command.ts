import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { inheritedEnvironment } from "./inherited-environment.ts";

const main = join(import.meta.dirname, "../../src/service/main.ts");

/** Runs a command of the service, such as `backup`. @returns what it prints */
export async function runServiceCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const env = { ...inheritedEnvironment(), ...environment };
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { env });
  return stdout;
}
