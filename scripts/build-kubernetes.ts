import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { goBuildFlags, kubernetesPrograms } from "../test/support/cluster/programs.ts";

/**
 * Builds the programs of another release of Kubernetes than the tests' own, to test an installation
 * there. Arguments: its version and a folder, which `KUBEBUILDER_ASSETS` names afterwards. Needs Go.
 */
const [, , version = "", folder = ""] = process.argv;
if (!/^1\.\d+\.\d+$/.test(version) || folder === "") {
  throw new TypeError("Usage: node scripts/build-kubernetes.ts 1.MINOR.PATCH FOLDER");
}

const module = mkdtempSync(join(tmpdir(), "kubernetes-"));
try {
  const stagedVersion = `v0.${version.slice("1.".length)}`;
  const lines = [
    "module modeloptimization.dev/kubernetes",
    "go 1.26.0",
    ...kubernetesPrograms.map((program) => `tool k8s.io/kubernetes/cmd/${program}`),
    `require k8s.io/kubernetes v${version}`,
    ...listStaged().map((name) => `replace ${name} => ${name} ${stagedVersion}`),
  ];
  writeFileSync(join(module, "go.mod"), lines.join("\n"));
  go("mod", "tidy");
  go("build", ...goBuildFlags(`v${version}`), "-o", `${resolve(folder)}/`, "tool");
} finally {
  rmSync(module, { recursive: true });
}

/** The modules that are developed in the folder `staging` of Kubernetes. */
function listStaged(): string[] {
  const source = `k8s.io/kubernetes@v${version}`;
  const downloaded = execFileSync("go", ["mod", "download", "-json", source], { encoding: "utf8" });
  const { GoMod } = z.object({ GoMod: z.string() }).parse(JSON.parse(downloaded));
  const replaced = /(k8s\.io\/[\w-]+) => \.\/staging/g;
  return [...readFileSync(GoMod, "utf8").matchAll(replaced)].flatMap(([, name]) => name ?? []);
}

function go(...args: readonly string[]): void {
  execFileSync("go", args, { cwd: module, stdio: "inherit" });
}
