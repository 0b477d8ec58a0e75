import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { errorMessage } from "../../log/error-message.ts";
import { statOrUndefined } from "../../storage/file-error.ts";

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

/** Directories that can be kept; a POSIX shell has so many free file descriptors. */
const maxKeptDirectories = 6;

/**
 * Runs a command in new namespaces that `unshare` has made. Arguments: the folder to hide, the
 * folder that the command may write, the number of files with secrets and these, the number of
 * files in the folder that the command only reads and these, the number of folders in the hidden
 * one that stay readable and the folders, and the command.
 *
 * Of the devices those stay that every program may use: others, such as disks, are open to root.
 * Descriptors hold what lies in the hidden folder until it is hidden. All other mounts become
 * read-only. The number of processes is limited by a setting that is the whole machine's before
 * Linux 6.14 and is left alone there: processes of root are not counted then. At last every
 * capability is given up, so that nothing of this can be undone. Where the machine runs out of
 * memory, the kernel ends the command first.
 */
const containmentScript = `
set -eu
data=$1 job=$2 secrets=$3
shift 3
while [ "$secrets" -gt 0 ]; do
  mount --bind /dev/null "$1"
  shift
  secrets=$((secrets - 1))
done
files=$1
shift
exec 3<>/dev/null 4<>/dev/zero 5<>/dev/full 6</dev/random 7</dev/urandom
mount -t tmpfs -o mode=755,size=64k none /dev
device=3
for name in null zero full random urandom; do
  : > "/dev/$name"
  mount -c --bind "/proc/self/fd/$device" "/dev/$name"
  device=$((device + 1))
done
ln -s /proc/self/fd /dev/fd
exec 3<&- 4<&- 5<&- 6<&- 7<&-
echo 1000 > /proc/self/oom_score_adj
case "$(uname -r)" in
  [0-5].* | 6.[0-9].* | 6.1[0-3].*) ;;
  *) echo 4096 > /proc/sys/kernel/pid_max 2>/dev/null || : ;;
esac
while [ "$files" -gt 0 ]; do
  mount --bind "$1" "$1"
  mount -o remount,bind,ro "$1"
  shift
  files=$((files - 1))
done
exec 3<"$job"
count=$1
shift
kept=4
last=$((kept + count))
while [ "$kept" -lt "$last" ]; do
  eval "exec $kept<\\"\\$1\\"; root$kept=\\$1"
  shift
  kept=$((kept + 1))
done
mount -t tmpfs -o mode=755,size=1m none "$data"
mkdir -p "$job"
mount -c --rbind /proc/self/fd/3 "$job"
exec 3<&-
while [ "$kept" -gt 4 ]; do
  kept=$((kept - 1))
  eval "root=\\$root$kept"
  mkdir -p "$root"
  mount -c --rbind "/proc/self/fd/$kept" "$root"
  eval "exec $kept<&-"
done
while read -r _ point _ options _; do
  case "$point" in "$job" | "$job"/* | /proc/*) continue ;; esac
  case "$options" in rw*) mount -o remount,bind,ro "$point" 2>/dev/null || : ;; esac
done < /proc/self/mounts
cd "$job"
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all \\
  prlimit --core=0 --nofile=4096 --nproc=4096 "$@"
`;
