import { execFile } from "node:child_process";
import { copyFile, glob, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildDashboard, dashboardFolder } from "../../../scripts/build-dashboard.ts";
import { hashParts } from "./hash-parts.ts";
import { cacheFolder, isAccessible, programPath } from "./programs.ts";

const exec = promisify(execFile);
const repository = fileURLToPath(new URL("../../..", import.meta.url));
const debian = "bookworm";
const manifests = ["package.json", "package-lock.json", ".npmrc"];
/** What the Dockerfile reads. */
const projectFiles = [...manifests, "Dockerfile", ".dockerignore", "src/**", "operator/**"];

/** What can be built, by the names that pods know them by. */
export const imageNames = {
  /** The first container of every pod. */
  pause: "localhost/pause:test",
  /** Debian and Node, nothing else. */
  node: "localhost/node:test",
  /** As the chart names them for a registry "localhost". */
  service: "localhost/model-optimization-service:0.1.0",
  worker: "localhost/model-optimization-worker:0.1.0",
} as const;

export type ImageName = keyof typeof imageNames;

export interface ImageBuild {
  /** Changes with everything that goes into the image. */
  readonly key: string;
  /** Built before it; its tag is given to `prepare`. */
  readonly base?: ImageName;
  /** Gives arguments of `buildah build`, which may name files that it makes in the folder. */
  readonly prepare: (folder: string, baseTag: string) => Promise<readonly string[]>;
}

/** How to build an image. */
export async function imageBuild(name: ImageName): Promise<ImageBuild> {
  if (name === "pause") return pauseBuild();
  return name === "node" ? nodeBuild() : projectBuild(name);
}

async function pauseBuild(): Promise<ImageBuild> {
  const program = await programPath("pause");
  return {
    key: hashParts([program]),
    async prepare(folder) {
      await copyFile(program, join(folder, "pause"));
      await writeFile(
        join(folder, "Dockerfile"),
        'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n',
      );
      return [folder];
    },
  };
}

async function nodeBuild(): Promise<ImageBuild> {
  const options = [
    "--variant=essential",
    "--include=libstdc++6",
    ...withoutFiles("doc", "man", "locale"),
    debian,
  ];
  return {
    key: hashParts([...options, process.version]),
    async prepare(folder) {
      await exec("mmdebstrap", ["--quiet", ...options, join(folder, "debian.tar")]);
      await copyFile(process.execPath, join(folder, "node"));
      const text = "FROM scratch\nADD debian.tar /\nCOPY node /usr/local/bin/node\n";
      await writeFile(join(folder, "Dockerfile"), text);
      return [folder];
    },
  };
}

async function projectBuild(target: "service" | "worker"): Promise<ImageBuild> {
  const base = await nodeBuild();
  const paths = (
    await Array.fromAsync(glob(projectFiles, { cwd: repository, withFileTypes: true }))
  )
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const contents = await Promise.all(
    paths.toSorted().map(async (path) => [path, await readFile(path)] as const),
  );
  return {
    key: hashParts([base.key, ...contents.flat()]),
    base: "node",
    async prepare(_folder, baseTag) {
      const dependencies = await installProductionModules();
      await buildDashboard();
      const context = [
        "--build-context",
        `dependencies=${dependencies}`,
        "--build-context",
        `dashboard=${dashboardFolder}`,
        "--build-arg",
        `BASE_IMAGE=${baseTag}`,
      ];
      return [...context, "--target", target, repository];
    },
  };
}

/** A folder that holds `node_modules` as the Dockerfile installs them: builds reach no registry. */
async function installProductionModules(): Promise<string> {
  const contents = await Promise.all(manifests.map((file) => readFile(join(repository, file))));
  const folder = join(cacheFolder, `dependencies-${hashParts(contents)}`);
  if (await isAccessible(folder)) return folder;
  const partial = `${folder}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  for (const file of manifests) await copyFile(join(repository, file), join(partial, file));
  await exec("npm", ["ci", "--omit=dev", "--omit=optional", "--loglevel=error"], { cwd: partial });
  await rename(partial, folder);
  return folder;
}

function withoutFiles(...shares: readonly string[]): string[] {
  return shares.map((share) => `--dpkgopt=path-exclude=/usr/share/${share}/*`);
}
