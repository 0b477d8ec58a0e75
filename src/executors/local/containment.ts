import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { statOrUndefined } from "../../storage/file-error.ts";
import { errorMessage } from "../../log/error-message.ts";
import { containmentScript, maxKeptDirectories } from "./containment-script.ts";

const run = promisify(execFile);
/** A machine that does not answer for so long, ms, gets no containment. */
const probeTimeoutMs = 10_000;

export interface ContainmentOptions {
  /** Folder of the service's records and blobs: workers see only their own folder of it. */
  readonly dataDirectory: string;
  /** Folders of `file://` models; workers read them also where they lie in the hidden one. */
  readonly allowedRoots: readonly string[];
  /** Files with secrets of the service elsewhere, which are empty for workers. */
  readonly secretFiles: readonly string[];
}

const namespaces = [
  "--user",
  "--map-root-user",
  "--mount",
  "--pid",
  "--fork",
  "--kill-child",
  "--mount-proc",
];

/** A command line of a worker. */
interface WorkerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The folder that the worker may write. */
  readonly directory: string;
  /** Files in it that it may only read. */
  readonly inputs: readonly string[];
}

/** Wraps the command line of a worker. */
export type Contain = (worker: WorkerCommand) => Pick<WorkerCommand, "command" | "args">;

/**
 * Namespaces for workers, by programs of Linux that need no privileges: no other file can be
 * written, no other process seen, and the service's data folder is hidden. Undefined where the
 * system does not allow it; the log says why.
 */
export async function openContainment(
  { dataDirectory, allowedRoots, secretFiles }: ContainmentOptions,
  { workDirectory, log }: { workDirectory: string; log: (message: string) => void },
): Promise<Contain | undefined> {
  try {
    const data = await realpath(dataDirectory);
    const kept = allowedRoots.filter((root) => root.startsWith(`${data}${path.sep}`));
    if (kept.length > maxKeptDirectories) {
      throw new Error(`More than ${maxKeptDirectories} allowed folders lie in the data folder`);
    }
    const present = await Array.fromAsync(secretFiles, async (file) => {
      return (await statOrUndefined(file)) === undefined ? [] : [await realpath(file)];
    });
    const secrets = present.flat();
    const contain = containIn(data, { kept, secrets });
    await probe(contain, workDirectory);
    return contain;
  } catch (error) {
    const [reason] = errorMessage(error).split("\n").slice(-2);
    log(`Workers are not contained: they can read and write what this service can (${reason})`);
    return undefined;
  }
}

interface Exceptions {
  /** Folders in the hidden one that stay readable. */
  readonly kept: readonly string[];
  /** Files elsewhere that are hidden. */
  readonly secrets: readonly string[];
}

function containIn(data: string, { kept, secrets }: Exceptions): Contain {
  return ({ command, args, directory, inputs }) => {
    const script = ["/bin/sh", "-c", containmentScript, "sh"];
    const lists = [secrets, inputs, kept].flatMap((list) => [String(list.length), ...list]);
    const contained = [...namespaces, "--", ...script, data, directory, ...lists, command, ...args];
    return { command: "unshare", args: contained };
  };
}

/** Runs a command as workers are run. */
async function probe(contain: Contain, workDirectory: string): Promise<void> {
  await mkdir(workDirectory, { recursive: true });
  const directory = await mkdtemp(path.join(await realpath(workDirectory), "probe-"));
  try {
    const worker = { command: process.execPath, args: ["--version"], directory, inputs: [] };
    const { command, args } = contain(worker);
    await run(command, args, { timeout: probeTimeoutMs });
  } finally {
    await rm(directory, { recursive: true });
  }
}
