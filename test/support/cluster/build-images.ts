import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rename, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { imageBuild, imageNames, type ImageName } from "./image-builds.ts";
import { cacheFolder, isAccessible } from "./programs.ts";
import { withLock } from "./with-lock.ts";

const exec = promisify(execFile);
const folder = join(cacheFolder, "images");
const overlayFileSystem = 0x794c7630;

/** Builds images, or finds them as built before; gives the paths of their archives. */
export async function buildImages(names: readonly ImageName[]): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const archives: string[] = [];
  await withLock(join(folder, "build.lock"), async () => {
    for (const name of names) archives.push(await archiveImage(name));
  });
  return archives;
}

async function archiveImage(name: ImageName): Promise<string> {
  const { key } = await imageBuild(name);
  const archive = join(folder, `${name}-${key}.tar`);
  if (await isAccessible(archive)) return archive;
  const tag = await storeImage(name);
  const partial = `${archive}.partial`;
  await rm(partial, { force: true });
  await buildah(["push", "--quiet", tag, `docker-archive:${partial}:${imageNames[name]}`]);
  await rename(partial, archive);
  await removeOlder(name, archive);
  return archive;
}

/** Gives the image's tag in buildah's store. */
async function storeImage(name: ImageName): Promise<string> {
  const { key, base, prepare } = await imageBuild(name);
  const tag = `localhost/${name}:${key}`;
  if (await isStored(tag)) return tag;
  const baseTag = base === undefined ? "" : await storeImage(base);
  const scratch = await mkdtemp(join(tmpdir(), "mos-image-"));
  try {
    await buildah([
      "build",
      "--quiet",
      "--layers",
      "--tag",
      tag,
      ...(await prepare(scratch, baseTag)),
    ]);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return tag;
}

async function isStored(tag: string): Promise<boolean> {
  return (await buildah(["images", "--quiet", "--filter", `reference=${tag}`])) !== "";
}

/** Each is some hundred megabytes, and every change of the source makes new ones. */
async function removeOlder(name: ImageName, newest: string): Promise<void> {
  const paths = (await readdir(folder))
    .filter((file) => file.startsWith(`${name}-`))
    .map((file) => join(folder, file));
  await Promise.all(
    paths.filter((path) => path !== newest).map((path) => rm(path, { force: true })),
  );
  const tags = await buildah([
    "images",
    "--format",
    "{{.Name}}:{{.Tag}}",
    "--filter",
    `reference=localhost/${name}`,
  ]);
  const older = tags
    .split("\n")
    .filter((tag) => tag !== "" && !newest.endsWith(`${name}-${tag.split(":")[1]}.tar`));
  if (older.length > 0) await buildah(["rmi", ...older]);
}

async function buildah(args: readonly string[]): Promise<string> {
  // Overlays cannot be stacked; the other driver copies whole file systems, ten times slower.
  const driver = (await statfs(folder)).type === overlayFileSystem ? "vfs" : "overlay";
  const store = [
    "--root",
    join(folder, "store"),
    "--runroot",
    join(folder, "run"),
    "--storage-driver",
    driver,
  ];
  const env = { ...process.env, BUILDAH_ISOLATION: "chroot" };
  const { stdout } = await exec("buildah", [...store, ...args], { env });
  return stdout.trim();
}
