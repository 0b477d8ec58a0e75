import { execFile } from "node:child_process";
import { access, constants, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hashParts } from "./hash-parts.ts";
import { withLock } from "./with-lock.ts";

const exec = promisify(execFile);
const tests = fileURLToPath(new URL("../..", import.meta.url));
/** What is built once for many runs. */
export const cacheFolder = join(homedir(), ".cache", "model-optimization-service", "cluster");

export const kubernetesPrograms = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubectl",
  "kubelet",
  "kube-proxy",
] as const;

/** The Go modules, each with the folder of its source, how long it is built on two cores, and its programs. */
const modules = {
  etcd: { source: "support/cluster/tools/etcd", minutes: 1, programs: ["etcd"] },
  kubernetes: {
    source: "support/cluster/tools/kubernetes",
    minutes: 8,
    programs: kubernetesPrograms,
  },
  kwok: { source: "support/cluster/tools/kwok", minutes: 1, programs: ["kwok"] },
  kueue: { source: "support/cluster/tools/kueue", minutes: 4, programs: ["kueue"] },
  coredns: { source: "support/cluster/tools/coredns", minutes: 2, programs: ["coredns"] },
  helm: { source: "support/cluster/tools/helm", minutes: 2, programs: ["helm"] },
  pause: { source: "support/cluster/tools/pause", minutes: 1, programs: ["pause"] },
  versitygw: { source: "storage/tools/versitygw", minutes: 2, programs: ["versitygw"] },
  "resource-health": {
    source: "operator/tools/resource-health",
    minutes: 1,
    programs: ["resource-health"],
  },
  act: { source: "action/tools/act", minutes: 1, programs: ["act"] },
  actionlint: { source: "action/tools/actionlint", minutes: 1, programs: ["actionlint"] },
} as const;

export type ToolModule = keyof typeof modules;
export type Program = (typeof modules)[ToolModule]["programs"][number];

/** Where a program lies, whether it is built or not. Envtest's assets, where they are named, come first. */
export async function programPath(program: Program): Promise<string> {
  const assets = process.env["KUBEBUILDER_ASSETS"];
  if (assets !== undefined && (await isExecutable(join(assets, program))))
    return join(assets, program);
  const name = moduleNames.find((module) =>
    modules[module].programs.some((built) => built === program),
  );
  if (name === undefined) throw new TypeError(`No module builds "${program}"`);
  return join(await moduleFolder(name), program);
}

/** Looks a command, or an absolute path, up in PATH and in the administrator's folders, which users' PATH often leaves out. */
export async function findCommand(command: string): Promise<string | undefined> {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  for (const folder of folders) {
    const path = resolve(folder, command);
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

export async function isModuleBuilt(name: ToolModule): Promise<boolean> {
  return isExecutable(await moduleFolder(name));
}

/** Builds what is missing of a module's programs; a no-op in later runs. */
export async function buildModule(name: ToolModule): Promise<void> {
  await mkdir(cacheFolder, { recursive: true });
  await withLock(join(cacheFolder, "build.lock"), async () => {
    if (await isModuleBuilt(name)) return;
    if ((await findCommand("go")) === undefined)
      throw new Error("Go 1.26 or later is needed: install it from go.dev");
    const { programs, minutes } = modules[name];
    process.stderr.write(`Building ${programs.join(", ")}: about ${minutes} min, once\n`);
    const folder = await moduleFolder(name);
    const partial = `${folder}.partial`;
    await rm(partial, { recursive: true, force: true });
    const flags = goBuildFlags(await kubernetesVersion());
    const packages = (await isAccessible(join(sourceFolder(name), "main.go"))) ? "." : "tool";
    await exec("go", ["build", ...flags, "-o", `${partial}/`, packages], {
      cwd: sourceFolder(name),
    });
    await rename(partial, folder);
  });
}

/** Without its version the API server calls itself v0.0.0, which charts' version checks refuse. */
export function goBuildFlags(kubernetesVersion: string): string[] {
  const version = `-X k8s.io/component-base/version.gitVersion=${kubernetesVersion}`;
  return ["-trimpath", "-buildvcs=false", "-ldflags", `-s -w ${version}`];
}

/** About how long a module takes to build on two cores, minutes. */
export function buildMinutes(name: ToolModule): number {
  return modules[name].minutes;
}

const moduleNames = Object.keys(modules) as ToolModule[];

function sourceFolder(name: ToolModule): string {
  return join(tests, modules[name].source);
}

async function moduleFolder(name: ToolModule): Promise<string> {
  const source = sourceFolder(name);
  const files = (await readdir(source)).toSorted();
  const contents = await Promise.all(files.map((file) => readFile(join(source, file))));
  return join(cacheFolder, `${name}-${hashParts(contents)}`);
}

async function kubernetesVersion(): Promise<string> {
  const required = /k8s\.io\/kubernetes (v[\d.]+)/.exec(
    await readFile(join(sourceFolder("kubernetes"), "go.mod"), "utf8"),
  );
  if (required?.[1] === undefined)
    throw new Error("Cannot find the version of k8s.io/kubernetes in its go.mod");
  return required[1];
}

function isExecutable(path: string): Promise<boolean> {
  return isAccessible(path, constants.X_OK);
}

export function isAccessible(path: string, mode = constants.R_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
