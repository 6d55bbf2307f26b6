/* libcairn_fault.so: counts a process's changes of a folder, makes one of them fail or the last thing that the process does, or records
 * them all. It goes in front of everything else in LD_PRELOAD.
 *
 *   CAIRN_FAULT_DIR      only calls on this folder and on what lies below it count
 *   CAIRN_FAULT_STATE    a file of 16 bytes that all processes of the step map: calls counted so far, faults given so far (u64 each)
 *   CAIRN_FAULT_TRACE    a file that gets a line "CALL PATH" for each call that counts, before it happens
 *   CAIRN_FAULT_CALLS    which calls count, for example "write,fsync"; absent = all that change something (not "read", nor "open" of
 *                        what is there)
 *                        "submit" and "complete", of a block of a save, come from library/write_engine.cc
 *   CAIRN_FAULT_PATH     a pattern as in fnmatch(3), where * also matches slashes; only calls on paths that match it count. A rename's path is
 *                        its new name
 *   CAIRN_FAULT_ACTION   what happens at the calls CAIRN_FAULT_FIRST … CAIRN_FAULT_LAST (counted from 1; LAST absent = FIRST):
 *     kill    SIGKILL instead of the call
 *     torn    a write does half, any other call all of its work, then SIGKILL
 *     fail    the call does nothing and fails with errno CAIRN_FAULT_ERRNO
 *     late    the call does its work and fails all the same
 *     short   a read or write does half, and says so
 *     hang    the call never comes back
 *     slow    a disk that moves 1 MB in a second: a call takes 1 ms, and 1 us for each byte that it transfers
 *     stop    SIGSTOP before the call; it goes on at SIGCONT
 *     stop-after  the call does its work, then SIGSTOP
 *   CAIRN_FAULT_RECORD   a file that gets one line for each call that succeeded, in the order of their effects over all processes;
 *                        fields are separated by tabs: create PATH INO, mkdir PATH INO, write INO OFFSET HEX, truncate INO BYTES,
 *                        allocate INO BYTES, fsync INO, rename FROM TO, link FROM TO, unlink PATH, rmdir PATH
 *
 * What goes past libc (io_uring) is not seen but for "submit" and "complete", at which kill, torn and hang can happen. Errors of its own end the process: a fault test that injects nothing must not pass.
 */
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wpedantic" /* statement expressions; dlsym gives functions as objects */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum Call {
  kCreate,
  kWrite,
  kFsync,
  kRename,
  kLink,
  kUnlink,
  kMkdir,
  kTruncate,
  kAllocate,
  kRead,
  kOpen,
  kSubmit,
  kComplete,
  kCalls
};
static const char* const kNames[kCalls] = {"create", "write",  "fsync",    "rename",   "link",
                                           "unlink", "mkdir",  "truncate", "allocate", "read",
                                           "open",   "submit", "complete"};

enum Action { kNone, kKill, kTorn, kFail, kLate, kShort, kHang, kSlow, kStop, kStopAfter, kActionCount };
static const char* const kActions[kActionCount] = {"none",  "kill", "torn", "fail", "late",
                                                   "short", "hang", "slow", "stop", "stop-after"};

/* Constant after Load. */
static struct {
  char dir[PATH_MAX];
  size_t dir_length;
  _Atomic uint64_t* state; /* [0] calls, [1] faults */
  enum Action action;
  uint64_t first, last;
  int error;
  bool counts[kCalls];
  const char* pattern; /* NULL = every path */
  int record, trace;   /* -1 = none */
} plan = {.record = -1, .trace = -1};

static pthread_mutex_t record_mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Real(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == NULL) {
    dprintf(2, "fault: libc has no %s\n", name);
    abort();
  }
  return function;
}

/* `REAL(int, fsync, (int))(fd)`: the function behind ours, looked up once. */
#define REAL(result, name, arguments)                          \
  ({                                                           \
    static result(*_Atomic real) arguments;                    \
    if (real == NULL) real = (result(*) arguments)Real(#name); \
    real;                                                      \
  })

static _Noreturn void Die(const char* what) {
  dprintf(2, "fault: %s: %s\n", what, strerror(errno));
  abort();
}

static int OpenLog(const char* variable) {
  const char* path = getenv(variable);
  if (path == NULL) return -1;
  const int fd =
      REAL(int, open, (const char*, int, ...))(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) Die(path);
  return fd;
}

__attribute__((constructor)) static void Load(void) {
  const char* dir = getenv("CAIRN_FAULT_DIR");
  if (dir == NULL) return;
  snprintf(plan.dir, sizeof plan.dir, "%s", dir);

  const char* state = getenv("CAIRN_FAULT_STATE");
  if (state != NULL) {
    const int fd = REAL(int, open, (const char*, int, ...))(state, O_RDWR | O_CLOEXEC);
    if (fd < 0) Die(state);
    void* map = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) Die(state);
    plan.state = map;
    close(fd);
  }
  const char* calls = getenv("CAIRN_FAULT_CALLS");
  for (int c = 0; c < kCalls; ++c)
    plan.counts[c] = calls == NULL ? c < kRead : strstr(calls, kNames[c]) != NULL;
  plan.pattern = getenv("CAIRN_FAULT_PATH");
  const char* action = getenv("CAIRN_FAULT_ACTION");
  for (int a = 0; action != NULL && a < kActionCount; ++a) {
    if (strcmp(action, kActions[a]) == 0) plan.action = (enum Action)a;
  }
  if (action != NULL && plan.action == kNone) Die(action);
  const char *first = getenv("CAIRN_FAULT_FIRST"), *last = getenv("CAIRN_FAULT_LAST"),
             *error = getenv("CAIRN_FAULT_ERRNO");
  plan.first = first != NULL ? strtoull(first, NULL, 10) : 0;
  plan.last = last != NULL ? strtoull(last, NULL, 10) : plan.first;
  plan.error = error != NULL ? atoi(error) : EIO;
  plan.record = OpenLog("CAIRN_FAULT_RECORD");
  plan.trace = OpenLog("CAIRN_FAULT_TRACE");
  plan.dir_length = strlen(plan.dir); /* last: now calls are looked at */
}

/* ---- whose call it is ---- */

static bool OfFd(int fd, char* out) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, out, PATH_MAX - 1);
  if (n < 0) return false;
  out[n] = '\0';
  return true;
}

static bool Below(const char* path) {
  return plan.dir_length > 0 && strncmp(path, plan.dir, plan.dir_length) == 0 &&
         (path[plan.dir_length] == '/' || path[plan.dir_length] == '\0');
}

/* The absolute form of `path`; whether it concerns us. */
static bool OfPath(int folder, const char* path, char* out) {
  if (plan.dir_length == 0 || path == NULL) return false;
  if (path[0] == '/') {
    snprintf(out, PATH_MAX, "%s", path);
  } else {
    char base[PATH_MAX];
    if (folder == AT_FDCWD ? getcwd(base, sizeof base) == NULL : !OfFd(folder, base)) return false;
    if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return false;
  }
  return Below(out);
}

static bool OfOpenFile(int fd, char* out) { return plan.dir_length > 0 && OfFd(fd, out) && Below(out); }

/* ---- what becomes of it ---- */

static void Append(int log, const char* text, size_t bytes) {
  if (REAL(ssize_t, write, (int, const void*, size_t))(log, text, bytes) != (ssize_t)bytes)
    Die("write a log");
}

/* To this thread: a signal to the process may stop another one first, and leave this one some time. */
static void Stop(void) { syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSTOP); }

/* Counts the call. May not return. */
static enum Action Enter(enum Call call, const char* path) {
  if (plan.state == NULL || !plan.counts[call]) return kNone;
  if (plan.pattern != NULL && fnmatch(plan.pattern, path, 0) != 0) return kNone;
  if (plan.trace >= 0) {
    char line[PATH_MAX + 16];
    Append(plan.trace, line, (size_t)snprintf(line, sizeof line, "%s %s\n", kNames[call], path));
  }
  const uint64_t n = atomic_fetch_add(&plan.state[0], 1) + 1;
  if (plan.action == kNone || n < plan.first || n > plan.last) return kNone;
  atomic_fetch_add(&plan.state[1], 1);
  if (plan.action == kKill) kill(getpid(), SIGKILL);
  while (plan.action == kHang) pause();
  if (plan.action == kSlow) usleep(1000);
  if (plan.action == kStop) Stop();
  return plan.action;
}

/* The result of a call that has done its work. */
static int64_t Leave(enum Action action, int64_t result) {
  if (action == kTorn) kill(getpid(), SIGKILL);
  if (action == kStopAfter) {
    const int error = errno;
    Stop();
    errno = error;
  }
  if (action == kLate && result >= 0) {
    errno = plan.error;
    return -1;
  }
  return result;
}

static int Fail(void) {
  errno = plan.error;
  return -1;
}

/* How much of a transfer is done; takes the slow disk's time for it. */
static size_t Share(enum Action action, size_t bytes) {
  if (action == kSlow) usleep((useconds_t)bytes);
  return (action == kTorn || action == kShort) && bytes > 1 ? bytes / 2 : bytes;
}

/* ---- what library/write_engine.cc says ---- */

__attribute__((visibility("default"))) int cairn_fault_enter(const char* call, int fd) {
  char path[PATH_MAX];
  if (!OfOpenFile(fd, path)) return kNone;
  return Enter(strcmp(call, kNames[kSubmit]) == 0 ? kSubmit : kComplete, path);
}

__attribute__((visibility("default"))) void cairn_fault_leave(int action) { Leave((enum Action)action, 0); }

/* ---- the record ---- */

static void Lock(void) {
  if (plan.record < 0) return;
  pthread_mutex_lock(&record_mutex);
  while (flock(plan.record, LOCK_EX) != 0 && errno == EINTR) {
  }
}

static void Unlock(void) {
  if (plan.record < 0) return;
  flock(plan.record, LOCK_UN);
  pthread_mutex_unlock(&record_mutex);
}

__attribute__((format(printf, 1, 2))) static void Record(const char* format, ...) {
  if (plan.record < 0) return;
  const int error = errno;
  char line[2 * PATH_MAX + 64];
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  Append(plan.record, line, (size_t)n);
  errno = error;
}

static void RecordBytes(int fd, int64_t offset, const unsigned char* bytes, size_t count) {
  if (plan.record < 0) return;
  const int error = errno;
  struct stat st;
  if (fstat(fd, &st) != 0) Die("fstat");
  char* line = malloc(2 * count + 64);
  if (line == NULL) Die("malloc");
  int at = sprintf(line, "write\t%lu\t%lld\t", (unsigned long)st.st_ino, (long long)offset);
  for (size_t i = 0; i < count; ++i) {
    line[at++] = "0123456789abcdef"[bytes[i] >> 4];
    line[at++] = "0123456789abcdef"[bytes[i] & 15];
  }
  line[at++] = '\n';
  Append(plan.record, line, (size_t)at);
  free(line);
  errno = error;
}

static unsigned long InodeOf(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) Die("fstat");
  return (unsigned long)st.st_ino;
}

/* ---- the interposed calls ---- */

#define EXPORT __attribute__((visibility("default")))

static int OpenAt(int folder, const char* path, int flags, mode_t mode) {
  char full[PATH_MAX];
  const bool changes = (flags & O_CREAT) != 0 || (flags & O_TRUNC) != 0;
  if ((!changes && !plan.counts[kOpen]) || !OfPath(folder, path, full))
    return REAL(int, openat, (int, const char*, int, ...))(folder, path, flags, mode);
  const enum Action action = Enter(changes ? kCreate : kOpen, full);
  if (action == kFail) return Fail();
  Lock();
  const bool there = access(full, F_OK) == 0;
  const int fd = REAL(int, openat, (int, const char*, int, ...))(folder, path, flags, mode);
  if (fd >= 0 && plan.record >= 0) {
    if (!there) Record("create\t%s\t%lu\n", full, InodeOf(fd));
    if (there && (flags & O_TRUNC) != 0) Record("truncate\t%lu\t0\n", InodeOf(fd));
  }
  Unlock();
  if (action == kLate && fd >= 0) close(fd);
  return (int)Leave(action, fd);
}

#define OPEN_BODY(folder)                     \
  mode_t mode = 0;                            \
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list arguments;                        \
    va_start(arguments, flags);               \
    mode = va_arg(arguments, mode_t);         \
    va_end(arguments);                        \
  }                                           \
  return OpenAt(folder, path, flags, mode)

EXPORT int open(const char* path, int flags, ...) { OPEN_BODY(AT_FDCWD); }
EXPORT int open64(const char* path, int flags, ...) { OPEN_BODY(AT_FDCWD); }
EXPORT int openat(int folder, const char* path, int flags, ...) { OPEN_BODY(folder); }
EXPORT int openat64(int folder, const char* path, int flags, ...) { OPEN_BODY(folder); }

EXPORT ssize_t write(int fd, const void* bytes, size_t count) {
  char path[PATH_MAX];
  if (!OfOpenFile(fd, path)) return REAL(ssize_t, write, (int, const void*, size_t))(fd, bytes, count);
  const enum Action action = Enter(kWrite, path);
  if (action == kFail) return Fail();
  Lock();
  const ssize_t n = REAL(ssize_t, write, (int, const void*, size_t))(fd, bytes, Share(action, count));
  if (n > 0) RecordBytes(fd, lseek(fd, 0, SEEK_CUR) - n, bytes, (size_t)n);
  Unlock();
  return Leave(action, n);
}

EXPORT ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  char path[PATH_MAX];
  if (!OfOpenFile(fd, path))
    return REAL(ssize_t, pwrite, (int, const void*, size_t, off_t))(fd, bytes, count, offset);
  const enum Action action = Enter(kWrite, path);
  if (action == kFail) return Fail();
  Lock();
  const ssize_t n =
      REAL(ssize_t, pwrite, (int, const void*, size_t, off_t))(fd, bytes, Share(action, count), offset);
  if (n > 0) RecordBytes(fd, offset, bytes, (size_t)n);
  Unlock();
  return Leave(action, n);
}
EXPORT ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) {
  return pwrite(fd, bytes, count, offset);
}

EXPORT ssize_t read(int fd, void* bytes, size_t count) {
  char path[PATH_MAX];
  if (!plan.counts[kRead] || !OfOpenFile(fd, path))
    return REAL(ssize_t, read, (int, void*, size_t))(fd, bytes, count);
  const enum Action action = Enter(kRead, path);
  if (action == kFail) return Fail();
  return Leave(action, REAL(ssize_t, read, (int, void*, size_t))(fd, bytes, Share(action, count)));
}

EXPORT ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  char path[PATH_MAX];
  if (!plan.counts[kRead] || !OfOpenFile(fd, path))
    return REAL(ssize_t, pread, (int, void*, size_t, off_t))(fd, bytes, count, offset);
  const enum Action action = Enter(kRead, path);
  if (action == kFail) return Fail();
  return Leave(action,
               REAL(ssize_t, pread, (int, void*, size_t, off_t))(fd, bytes, Share(action, count), offset));
}
EXPORT ssize_t pread64(int fd, void* bytes, size_t count, off64_t offset) {
  return pread(fd, bytes, count, offset);
}

static int Sync(int fd, int (*real)(int)) {
  char path[PATH_MAX];
  if (!OfOpenFile(fd, path)) return real(fd);
  const enum Action action = Enter(kFsync, path);
  if (action == kFail) return Fail();
  Lock();
  const int result = real(fd);
  if (result == 0 && plan.record >= 0) Record("fsync\t%lu\n", InodeOf(fd));
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int fsync(int fd) { return Sync(fd, REAL(int, fsync, (int))); }
EXPORT int fdatasync(int fd) { return Sync(fd, REAL(int, fdatasync, (int))); }

EXPORT int ftruncate(int fd, off_t bytes) {
  char path[PATH_MAX];
  if (!OfOpenFile(fd, path)) return REAL(int, ftruncate, (int, off_t))(fd, bytes);
  const enum Action action = Enter(kTruncate, path);
  if (action == kFail) return Fail();
  Lock();
  const int result = REAL(int, ftruncate, (int, off_t))(fd, bytes);
  if (result == 0 && plan.record >= 0) Record("truncate\t%lu\t%lld\n", InodeOf(fd), (long long)bytes);
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int ftruncate64(int fd, off64_t bytes) { return ftruncate(fd, bytes); }

EXPORT int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  char path[PATH_MAX];
  if (!OfOpenFile(fd, path)) return REAL(int, fallocate, (int, int, off_t, off_t))(fd, mode, offset, bytes);
  const enum Action action = Enter(kAllocate, path);
  if (action == kFail) return Fail();
  Lock();
  const int result = REAL(int, fallocate, (int, int, off_t, off_t))(fd, mode, offset, bytes);
  if (result == 0 && mode == 0 && plan.record >= 0)
    Record("allocate\t%lu\t%lld\n", InodeOf(fd), (long long)(offset + bytes));
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) {
  return fallocate(fd, mode, offset, bytes);
}

EXPORT int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  char full_from[PATH_MAX], full_to[PATH_MAX];
  const bool ours = OfPath(from_folder, from, full_from) && OfPath(to_folder, to, full_to);
  if (!ours)
    return REAL(int, renameat2, (int, const char*, int, const char*, unsigned))(from_folder, from, to_folder,
                                                                                to, flags);
  const enum Action action = Enter(kRename, full_to);
  if (action == kFail) return Fail();
  Lock();
  const int result = REAL(int, renameat2, (int, const char*, int, const char*, unsigned))(
      from_folder, from, to_folder, to, flags);
  if (result == 0) Record("rename\t%s\t%s\n", full_from, full_to);
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
EXPORT int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return renameat2(from_folder, from, to_folder, to, 0);
}

EXPORT int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  char full_from[PATH_MAX], full_to[PATH_MAX];
  const bool ours = OfPath(from_folder, from, full_from) && OfPath(to_folder, to, full_to);
  if (!ours)
    return REAL(int, linkat, (int, const char*, int, const char*, int))(from_folder, from, to_folder, to,
                                                                        flags);
  const enum Action action = Enter(kLink, full_to);
  if (action == kFail) return Fail();
  Lock();
  const int result =
      REAL(int, linkat, (int, const char*, int, const char*, int))(from_folder, from, to_folder, to, flags);
  if (result == 0) Record("link\t%s\t%s\n", full_from, full_to);
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

EXPORT int unlinkat(int folder, const char* path, int flags) {
  char full[PATH_MAX];
  if (!OfPath(folder, path, full)) return REAL(int, unlinkat, (int, const char*, int))(folder, path, flags);
  const enum Action action = Enter(kUnlink, full);
  if (action == kFail) return Fail();
  Lock();
  const int result = REAL(int, unlinkat, (int, const char*, int))(folder, path, flags);
  if (result == 0) Record("%s\t%s\n", (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", full);
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
EXPORT int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

EXPORT int remove(const char* path) {
  struct stat st;
  return unlinkat(AT_FDCWD, path, lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

EXPORT int mkdirat(int folder, const char* path, mode_t mode) {
  char full[PATH_MAX];
  if (!OfPath(folder, path, full)) return REAL(int, mkdirat, (int, const char*, mode_t))(folder, path, mode);
  const enum Action action = Enter(kMkdir, full);
  if (action == kFail) return Fail();
  Lock();
  const int result = REAL(int, mkdirat, (int, const char*, mode_t))(folder, path, mode);
  struct stat st;
  if (result == 0 && stat(full, &st) == 0) Record("mkdir\t%s\t%lu\n", full, (unsigned long)st.st_ino);
  Unlock();
  return (int)Leave(action, result);
}
EXPORT int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
