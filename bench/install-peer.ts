import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorMessage } from "../src/log/error-message.ts";
import { installOnce } from "../test/support/prepare-python.ts";
import { benchCache } from "./engine/bench-cache.ts";

const exec = promisify(execFile);

interface PeerPackages {
  /** What it is called in what is printed. */
  readonly title: string;
  readonly folder: string;
  /** File of all packages, which are installed without what they ask for besides. */
  readonly requirements: string;
  /** Packages, and their archives while they are installed. */
  readonly neededBytes: number;
}

/**
 * Installs a peer in Python at its first use.
 * @returns the interpreter that has it; undefined where it cannot be had, which is said
 */
export async function installPeer(peer: PeerPackages): Promise<string | undefined> {
  const hash = createHash("sha256").update(await readFile(peer.requirements));
  const environment = join(benchCache, `${peer.folder}-${hash.digest("hex").slice(0, 12)}`);
  try {
    await installOnce(environment, async () => install(environment, peer));
    return join(environment, "bin", "python3");
  } catch (error) {
    await rm(environment, { recursive: true, force: true });
    const what = `${peer.title} is not measured, since it cannot be installed`;
    process.stdout.write(`${what}: ${errorMessage(error)}\n`);
    return undefined;
  }
}

async function install(
  environment: string,
  { title, requirements, neededBytes }: PeerPackages,
): Promise<void> {
  await mkdir(benchCache, { recursive: true });
  const { bavail, bsize } = await statfs(benchCache);
  const gigabytes = `${neededBytes / 1e9} GB`;
  if (bavail * bsize < neededBytes) {
    throw new Error(`${benchCache} needs ${gigabytes} of free disk`);
  }
  process.stdout.write(`Installing ${title} from PyPI, up to ${gigabytes} on the disk\n`);
  await exec("python3", ["-m", "venv", environment]);
  const options = ["--quiet", "--no-cache-dir", "--no-deps", "-r", requirements];
  await exec(join(environment, "bin", "python3"), ["-m", "pip", "install", ...options]);
}
