import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { buildModule } from "./programs.ts";
import { isRoot, missingReason, missingPackages, type Requirement } from "./requirements.ts";

const exec = promisify(execFile);

/** Builds what is missing, and in CI installs packages too; a no-op in later runs. Throws where something stays missing. */
export async function prepareRequirement(requirement: Requirement): Promise<void> {
  const packages = await missingPackages(requirement);
  if (packages.length > 0 && process.env["CI"] === "true" && isRoot())
    await installPackages(packages);
  const unmet = await missingReason({ ...requirement, modules: [] });
  if (unmet !== false) throw new Error(unmet);
  for (const module of requirement.modules) await buildModule(module);
}

async function installPackages(packages: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await exec("apt-get", ["update"], { env });
  await exec("apt-get", ["install", "-y", "--no-install-recommends", ...packages], { env });
}
