#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long counted;

/* Whether this call fails: FAILING_CALLS names it, and its number is FIRST, FIRST + STEP, … */
static int fails(const char *name) {
  const char *names = getenv("FAILING_CALLS");
  if (names == NULL || strstr(names, name) == NULL) return 0;
  long past = atomic_fetch_add(&counted, 1) + 1 - atol(getenv("FAILING_FIRST"));
  if (past < 0 || past % atol(getenv("FAILING_STEP")) != 0) return 0;
  int code = atoi(getenv("FAILING_ERROR"));
  if (code == 0) kill(getpid(), SIGKILL);
  errno = code;
  return 1;
}

#define FAILING(result, name, called, parameters, values)            \
  result called parameters {                                         \
    static result(*next) parameters;                                 \
    if (next == NULL) next = (result(*) parameters)dlsym(RTLD_NEXT, #called); \
    return fails(name) ? -1 : next values;                           \
  }

FAILING(ssize_t, "pwrite", pwrite, (int f, const void *b, size_t n, off_t at), (f, b, n, at))
FAILING(ssize_t, "pwrite", pwrite64, (int f, const void *b, size_t n, off_t at), (f, b, n, at))
FAILING(int, "ftruncate", ftruncate, (int f, off_t n), (f, n))
FAILING(int, "ftruncate", ftruncate64, (int f, off_t n), (f, n))
FAILING(int, "rename", rename, (const char *from, const char *to), (from, to))
FAILING(int, "fsync", fsync, (int f), (f))
FAILING(int, "fdatasync", fdatasync, (int f), (f))
