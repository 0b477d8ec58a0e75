import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { errorMessage } from "../../log/error-message.ts";
import { statOrUndefined } from "../../storage/file-error.ts";

const run = promisify(execFile);
/** A machine that does not answer for so long, ms, gets no containment. */
const probeTimeoutMs = 10_000;

export interface ContainmentOptions {
  /** Folder of the service's records and blobs: workers see only their own folder of it. */
  readonly dataDirectory: string;
  /** Folders of `file://` models, which workers read. */
  readonly allowedRoots: readonly string[];
  /** Files with secrets of the service elsewhere, which are empty for workers. */
  readonly secretFiles: readonly string[];
  /** Folder of modules that Node has compiled before. */
  readonly moduleCache?: string | undefined;
}

const namespaces = [
  "--user",
  "--map-root-user",
  "--mount",
  "--net",
  "--ipc",
  "--pid",
  "--fork",
  "--kill-child",
  "--mount-proc",
];

/** What programs need of the system: where libraries are, and what processors and limits it has. */
const systemPaths = [
  "/bin",
  "/sbin",
  "/usr",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/alternatives",
  "/etc/localtime",
  "/sys/devices/system",
  "/sys/fs/cgroup",
];

/** The code of workers and its packages. */
const projectRoot = fileURLToPath(new URL("../../..", import.meta.url));

/** A command line of a worker. */
interface WorkerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The folder that the worker may write. */
  readonly directory: string;
  /** Files in it that it may only read. */
  readonly inputs: readonly string[];
  /** Devices that it may use besides those of every program. */
  readonly devices: readonly string[];
}

/** Wraps the command line of a worker. */
export type Contain = (worker: WorkerCommand) => Pick<WorkerCommand, "command" | "args">;

/**
 * Namespaces for workers, by programs of Linux that need no privileges: of the machine's files they
 * see only those that they need, and can write none but their own; no other process, no network and
 * no socket but that of their job. Undefined where the system does not allow it; the log says why.
 */
export async function openContainment(
  { dataDirectory, allowedRoots, secretFiles, moduleCache }: ContainmentOptions,
  { workDirectory, log }: { workDirectory: string; log: (message: string) => void },
): Promise<Contain | undefined> {
  try {
    const data = await realpath(dataDirectory);
    const roots = await listWithTargets(allowedRoots);
    const needed = [projectRoot, process.execPath, ...(moduleCache ? [moduleCache] : [])];
    const paths = [...(await listWithTargets(needed)), ...roots];
    const contain = containIn(data, {
      visible: withoutNested([...systemPaths, ...paths].filter((each) => !isWithin(each, data))),
      kept: withoutNested(paths.filter((each) => isWithin(each, data))),
      secrets: await listTargets(secretFiles),
    });
    await probe(contain, workDirectory);
    return contain;
  } catch (error) {
    const [reason] = errorMessage(error).split("\n").slice(-2);
    log(
      `Workers are not contained: they can read, write and reach what this service can (${reason})`,
    );
    return undefined;
  }
}

/** Real paths of the files that are there. */
async function listTargets(files: readonly string[]): Promise<string[]> {
  const targets = await Array.fromAsync(files, async (file) => {
    return (await statOrUndefined(file)) === undefined ? [] : [await realpath(file)];
  });
  return targets.flat();
}

/** Paths, and where they lead if they are links. */
async function listWithTargets(files: readonly string[]): Promise<string[]> {
  return [...files.map((file) => path.resolve(file)), ...(await listTargets(files))];
}

function isWithin(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder === "/" ? folder : `${folder}/`);
}

function withoutNested(files: readonly string[]): string[] {
  const unique = [...new Set(files)];
  return unique.filter((file) => !unique.some((each) => each !== file && isWithin(file, each)));
}

interface VisibleFiles {
  /** Files and folders outside of the hidden folder. */
  readonly visible: readonly string[];
  /** Folders in the hidden one that stay readable. */
  readonly kept: readonly string[];
  /** Files elsewhere that are hidden. */
  readonly secrets: readonly string[];
}

function containIn(data: string, { visible, kept, secrets }: VisibleFiles): Contain {
  return ({ command, args, directory, inputs, devices }) => {
    const script = ["/bin/sh", "-c", containmentScript, "sh"];
    const writable = devices.length > 0 ? "/proc" : directory;
    const files = [[...visible, ...devices], kept, inputs, secrets];
    const lists = files.flatMap((list) => [String(list.length), ...list]);
    const places = [data, directory, writable, ...lists];
    return {
      command: "unshare",
      args: [...namespaces, "--", ...script, ...places, command, ...args],
    };
  };
}

/** Runs a command as workers are run. */
async function probe(contain: Contain, workDirectory: string): Promise<void> {
  await mkdir(workDirectory, { recursive: true });
  const directory = await mkdtemp(path.join(await realpath(workDirectory), "probe-"));
  try {
    const worker = { command: process.execPath, args: ["--version"], directory };
    const { command, args } = contain({ ...worker, inputs: [], devices: [] });
    await run(command, args, { timeout: probeTimeoutMs });
  } finally {
    await rm(directory, { recursive: true });
  }
}

/**
 * Runs a command in new namespaces that `unshare` has made. Arguments: the folder to hide, the
 * folder that the command may write, that or `/proc`, and four times a number of paths and these:
 * what is visible of the system, what stays visible in the hidden folder, files of the command's
 * folder that it only reads, and files with secrets. Then the command. Links to what is read would
 * lead into the hidden folder: the files take their places.
 *
 * A new root has what is visible and nothing else: sockets in the file system could be connected
 * from every network namespace. Of the devices those are there that every program may use, and the
 * command's: others, such as disks, are open to root. All mounts but the command's folder become
 * read-only; with devices, what processes may say of themselves does not, since CUDA's driver names
 * its threads in `/proc/self/task/TID/comm` and fails where it cannot. The number of processes is
 * limited by a setting that is the whole machine's before Linux 6.14 and is not changed there:
 * processes of root are not counted then. At last every capability is given up, so that nothing of
 * this can be undone. Where the machine runs out of memory, the kernel ends the command first. The
 * list of mounts has spaces in paths as octal numbers.
 */
const containmentScript = `
set -eu
data=$1 job=$2 writable=$3
shift 3
new=$job/.root
show() {
  if [ "$1" != / ] && [ -e "$new$1" ]; then return; fi
  mkdir -p "$new\${1%/*}"
  if [ -L "$1" ]; then
    ln -s "$(readlink "$1")" "$new$1"
  elif [ -d "$1" ]; then
    mkdir -p "$new$1"
    mount --rbind "$1" "$new$1"
  elif [ -e "$1" ]; then
    : > "$new$1"
    mount --bind "$1" "$new$1"
  fi
}
mkdir -p "$new"
mount -t tmpfs -o mode=755,size=1m none "$new"
mkdir -p "$new/dev" "$new/proc"
mount --rbind /proc "$new/proc"
mount -t tmpfs -o mode=755,size=64k none "$new/dev"
for name in null zero full random urandom; do show "/dev/$name"; done
count=$1
shift
while [ "$count" -gt 0 ]; do
  show "$1"
  shift
  count=$((count - 1))
done
mkdir -p "$new$data"
ln -s /proc/self/fd "$new/dev/fd"
mkdir "$new/dev/old"
mount -t tmpfs -o mode=755,size=1m none "$new$data"
count=$1
shift
while [ "$count" -gt 0 ]; do
  show "$1"
  shift
  count=$((count - 1))
done
mkdir -p "$new$job"
mount --bind "$job" "$new$job"
count=$1
shift
while [ "$count" -gt 0 ]; do
  from=$(readlink -f "$1")
  if [ -L "$1" ]; then rm "$1"; : > "$1"; fi
  mount --bind "$from" "$new$1"
  mount -o remount,bind,ro "$new$1"
  shift
  count=$((count - 1))
done
count=$1
shift
while [ "$count" -gt 0 ]; do
  if [ -e "$new$1" ]; then mount --bind /dev/null "$new$1"; fi
  shift
  count=$((count - 1))
done
echo 1000 > /proc/self/oom_score_adj
case "$(uname -r)" in
  [0-5].* | 6.[0-9].* | 6.1[0-3].*) ;;
  *) echo 4096 > /proc/sys/kernel/pid_max 2>/dev/null || : ;;
esac
cd "$new"
pivot_root . dev/old
cd /
umount -l /dev/old
rmdir /dev/old
rmdir "$job/.root" 2>/dev/null || :
if [ "$writable" = /proc ]; then
  for entry in /proc/[!0-9]*; do
    if [ ! -L "$entry" ]; then mount -o bind,ro "$entry" "$entry"; fi
  done
fi
while read -r _ point _ options _; do
  case "$point" in *\\\\*) point=$(printf %b "$(printf %s "$point" | sed 's/\\\\/\\\\0/g')") ;; esac
  case "$point" in "$job" | "$job"/* | "$writable" | /proc/*) continue ;; esac
  case "$options" in rw*) mount -o remount,bind,ro "$point" 2>/dev/null || : ;; esac
done < /proc/self/mounts
cd "$job"
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all \\
  prlimit --core=0 --nofile=4096 --nproc=4096 "$@"
`;
