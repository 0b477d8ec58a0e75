#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { maxNames = 16 };

static atomic_long counted[maxNames];

/* Shared with the process that watches: how many calls may still fail, and did, by their names. */
static struct counts {
  atomic_long left, failed[maxNames];
} *counts;

__attribute__((constructor)) static void mapCounts(void) {
  const char *file = getenv("FAILING_COUNTS");
  if (file == NULL) return;
  int f = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR);
  void *shared = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  if (shared == MAP_FAILED) abort();
  counts = shared;
  syscall(SYS_close, f);
}

/* The number of a name in a list with commas, or -1. */
static int indexOf(const char *name, const char *list) {
  size_t length = strlen(name);
  for (int i = 0; list != NULL; i++) {
    if (strncmp(list, name, length) == 0 && strchr(",", list[length]) != NULL) return i;
    list = strchr(list, ',');
    if (list != NULL) list++;
  }
  return -1;
}

/* The number at a place of a list with commas, which begins anew behind its end. */
static long numberAt(const char *list, long place) {
  const char *number = list;
  for (; place > 0; place--) {
    number = strchr(number, ',');
    number = number == NULL ? list : number + 1;
  }
  return atol(number);
}

/* Whether this call fails: FAILING_CALLS names it, its file lies in FAILING_FOLDER, and its number
   is FIRST, FIRST + STEP, … Where there are several steps, each name has its own, and is counted
   alone. Codes take turns. */
static int fails(const char *name, const char *file) {
  int index = indexOf(name, getenv("FAILING_CALLS"));
  if (index < 0) return 0;
  const char *folder = getenv("FAILING_FOLDER");
  if (folder != NULL && strncmp(file, folder, strlen(folder)) != 0) return 0;
  if (counts != NULL && atomic_load(&counts->left) <= 0) return 0;
  const char *steps = getenv("FAILING_STEP");
  int counter = strchr(steps, ',') == NULL ? 0 : index;
  long past = atomic_fetch_add(&counted[counter], 1) + 1 - atol(getenv("FAILING_FIRST"));
  long step = numberAt(steps, index);
  if (past < 0 || past % step != 0) return 0;
  if (counts != NULL) {
    if (atomic_fetch_sub(&counts->left, 1) <= 0) return 0;
    atomic_fetch_add(&counts->failed[index], 1);
  }
  int code = (int)numberAt(getenv("FAILING_ERROR"), past / step);
  if (code == 0) kill(getpid(), SIGKILL);
  errno = code;
  return 1;
}

static int failsAt(const char *name, int descriptor) {
  char link[32], file[4096] = "";
  if (getenv("FAILING_FOLDER") != NULL) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (readlink(link, file, sizeof file - 1) < 0) return 0;
  }
  return fails(name, file);
}

#define NEXT(result, called, parameters)                  \
  static result(*next) parameters;                        \
  if (next == NULL) next = (result(*) parameters)dlsym(RTLD_NEXT, #called);

#define FAILING(result, name, called, parameters, values) \
  result called parameters {                              \
    NEXT(result, called, parameters)                      \
    return failsAt(name, f) ? -1 : next values;           \
  }

#define FAILING_OPEN(called)                                    \
  int called(const char *file, int flags, ...) {                \
    NEXT(int, called, (const char *, int, ...))                 \
    va_list rest;                                               \
    va_start(rest, flags);                                      \
    mode_t mode = va_arg(rest, mode_t);                         \
    va_end(rest);                                               \
    return fails("open", file) ? -1 : next(file, flags, mode);  \
  }

FAILING(ssize_t, "read", read, (int f, void *b, size_t n), (f, b, n))
FAILING(ssize_t, "pread", pread, (int f, void *b, size_t n, off_t at), (f, b, n, at))
FAILING(ssize_t, "pread", pread64, (int f, void *b, size_t n, off_t at), (f, b, n, at))
FAILING(ssize_t, "write", write, (int f, const void *b, size_t n), (f, b, n))
FAILING(ssize_t, "pwrite", pwrite, (int f, const void *b, size_t n, off_t at), (f, b, n, at))
FAILING(ssize_t, "pwrite", pwrite64, (int f, const void *b, size_t n, off_t at), (f, b, n, at))
FAILING(int, "ftruncate", ftruncate, (int f, off_t n), (f, n))
FAILING(int, "ftruncate", ftruncate64, (int f, off_t n), (f, n))
FAILING(int, "fsync", fsync, (int f), (f))
FAILING(int, "fdatasync", fdatasync, (int f), (f))
FAILING_OPEN(open)
FAILING_OPEN(open64)

#define FAILING_NAME(called)                                 \
  int called(const char *from, const char *to) {             \
    NEXT(int, called, (const char *, const char *))          \
    return fails(#called, to) ? -1 : next(from, to);         \
  }

FAILING_NAME(rename)
FAILING_NAME(link)
