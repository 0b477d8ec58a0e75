import { execFile } from "node:child_process";
import { copyFile, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlane } from "./control-plane.ts";
import { programPath } from "./programs.ts";

const root = join(import.meta.dirname, "../../..");
const run = promisify(execFile);

/** A page of the documentation. */
export async function readPage(name: string) {
  const text = await readFile(join(root, "docs", name), "utf8");
  return {
    /** The shell scripts of a section, word for word. */
    listScripts(title: string): string[] {
      const section = new RegExp(`^## ${title}$([^]*?)(?=^## |$(?![^]))`, "m").exec(text)?.[1];
      if (section === undefined) throw new Error(`docs/${name} has no section "${title}"`);
      const blocks = section.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm);
      return Array.from(blocks, ([, , script = ""]) => script);
    },
  };
}

/**
 * Runs scripts as a reader does: with the cluster's own configuration of kubectl and Helm, in the
 * project's folder. Gives what they print.
 */
export async function openPageShell({
  kubeconfig,
  folder,
}: Pick<ControlPlane, "kubeconfig" | "folder">): Promise<(script: string) => Promise<string>> {
  const programs = await Promise.all([programPath("helm"), programPath("kubectl")]);
  const ownConfig = join(folder, "reader-kubeconfig");
  await copyFile(kubeconfig, ownConfig);
  const env = {
    PATH: [...programs.map((program) => dirname(program)), process.env["PATH"]].join(":"),
    KUBECONFIG: ownConfig,
    HOME: folder,
    REGISTRY: "localhost",
  };
  return async (script) => (await run("sh", ["-ec", script], { env, cwd: root })).stdout;
}
