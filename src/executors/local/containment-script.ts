/** Directories that can be kept; a POSIX shell has so many free file descriptors. */
export const maxKeptDirectories = 6;

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
export const containmentScript = `
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
