/* The shield protocol. The file is /dev/shm/cairn-<uid>/<job>.<node>.shield.<step>; its content is a list of pids (32 bits each).
 *
 *   1. A member holds a read lock on byte 0 as long as it is at work. Read locks are shared, so that any number of members hold one; a POSIX
 *      lock ends with its process, so that a member that was killed shields nobody.
 *   2. A process that Slurm sends SIGTERM asks for the locks on byte 0. None: the signal acts. Else it appends its pid, and asks again,
 *      since the last member may have gone, and read the list, in between. None now: the signal acts. Else the process goes on.
 *   3. A member that leaves, or learns that the job was cancelled, drops its lock.
 *   4. If no lock is left it passes the signal on: takes a write lock on byte 1 (only one process passes on), sends the signal to each listed
 *      pid that still is a process of this step, and truncates the file. One that ends with the job has passed it on to its own ancestors before
 *      step 3, and made zeros of their pids; the outermost first, since a shell that waited for it must not go on to its next command.
 *   5. Who has dropped its lock, or passed on, then asks for a write lock on byte 0 and under it unlinks the file, unless pids are in it. Any
 *      member still at work denies it that lock, and will ask for it later. A write lock is no membership (step 2). Who comes to work
 *      meanwhile is refused the read lock, or finds that the file has no name any more, and opens it anew; who hides looks at the name too.
 *
 * The file of members that were all killed stays, for the epilog.
 *
 * A pid that was used again is told from one of this step by the token in its environment.
 *
 * A process loses its lock when it closes *any* descriptor of the file. So a member opens it once, and its handler never does.
 */
#include "hooks/preload/shield.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kAtWorkByte = 0, kForwardByte = 1, kMaxTries = 1000 };

static char folder[64];
static char file[NAME_MAX + 1]; /* "" = no shield */
static char token_entry[128];   /* as it stands in an environment */
static _Atomic int held_fd = -1;

void cairn_shield_configure(const char* token, const char* key, const char* node) {
  snprintf(folder, sizeof folder, "/dev/shm/cairn-%u", (unsigned)geteuid());
  snprintf(token_entry, sizeof token_entry, "SLURM_CAIRN_TOKEN=%s", token);
  const char* step = key ? strchr(key, '.') : NULL;
  if (step == NULL || node == NULL || strchr(key, '/') || strchr(node, '/')) return;
  const int job_length = (int)(step - key);
  const int step_length = (int)strcspn(step + 1, ".");
  const int length =
      snprintf(file, sizeof file, "%.*s.%s.shield.%.*s", job_length, key, node, step_length, step + 1);
  if (length >= (int)sizeof file) file[0] = '\0';
}

/* The system call itself: the function fstat() came with glibc 2.33. All zeros when it fails. */
static struct stat StatOf(int fd) {
  struct stat info;
  if (syscall(SYS_fstat, fd, &info) != 0) memset(&info, 0, sizeof info);
  return info;
}

/* The file, or -1 with errno: ENOENT where no member has been (unless `create`), EPERM where the folder is not ours alone. */
static int OpenFile(int create) {
  if (file[0] == '\0') {
    errno = ENOENT;
    return -1;
  }
  if (create && mkdir(folder, 0700) != 0 && errno != EEXIST) return -1;
  const int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder_fd < 0) return -1;
  int fd = -1;
  const struct stat info = StatOf(folder_fd);
  if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0) {
    fd = openat(folder_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT : O_APPEND), 0600);
  } else {
    errno = EPERM;
  }
  const int error = errno;
  close(folder_fd);
  errno = error;
  return fd;
}

static struct flock ByteLock(short type, off_t byte) {
  struct flock lock;
  memset(&lock, 0, sizeof lock);
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

/* Whether another process is a member at work. */
static int OthersAtWork(int fd) {
  struct flock lock = ByteLock(F_WRLCK, kAtWorkByte);
  return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

/* Step 5. A file that has no name any more may have a successor of the same name. */
static void RemoveIfUnused(int fd) {
  char path[sizeof folder + sizeof file];
  struct flock lock = ByteLock(F_WRLCK, kAtWorkByte);
  if (fcntl(fd, F_SETLK, &lock) != 0) return;
  const struct stat info = StatOf(fd);
  if (info.st_nlink == 0 || info.st_size != 0) return;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  unlink(path);
}

int cairn_shield_take(void) {
  /* Again and again only while others leave at this very moment. */
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const int fd = OpenFile(1);
    if (fd < 0) return -1;
    struct flock lock = ByteLock(F_RDLCK, kAtWorkByte);
    const int locked = fcntl(fd, F_SETLK, &lock) == 0;
    const int error = errno;
    if (locked && StatOf(fd).st_nlink != 0) {
      atomic_store(&held_fd, fd);
      return 0;
    }
    close(fd);
    if (!locked && error != EAGAIN && error != EACCES) {
      errno = error;
      return -1;
    }
    sched_yield();
  }
  errno = EAGAIN;
  return -1;
}

void cairn_shield_drop(void) {
  const int fd = atomic_exchange(&held_fd, -1);
  if (fd < 0) return;
  struct flock lock = ByteLock(F_UNLCK, kAtWorkByte);
  fcntl(fd, F_SETLK, &lock);
  RemoveIfUnused(fd);
  close(fd);
}

void cairn_shield_forget(void) {
  const int fd = atomic_exchange(&held_fd, -1);
  if (fd >= 0) close(fd);
}

int cairn_shield_hide(void) {
  const int fd = OpenFile(0);
  if (fd < 0) return 0;
  const int32_t self = getpid();
  const int hidden = OthersAtWork(fd) && write(fd, &self, sizeof self) == sizeof self && OthersAtWork(fd) &&
                     StatOf(fd).st_nlink != 0;
  close(fd);
  return hidden;
}

static int IsOfThisStep(int32_t pid) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/environ", pid);
  FILE* environment = fopen(path, "re");
  if (environment == NULL) return 0;
  char* entry = NULL;
  size_t capacity = 0;
  int found = 0;
  while (!found && getdelim(&entry, &capacity, '\0', environment) > 0)
    found = strcmp(entry, token_entry) == 0;
  free(entry);
  fclose(environment);
  return found;
}

/* Where the pid stands in the list; -1 = nowhere. */
static off_t PlaceOf(int fd, int32_t pid) {
  int32_t listed;
  for (off_t at = 0; pread(fd, &listed, sizeof listed, at) == sizeof listed; at += (off_t)sizeof listed) {
    if (listed == pid) return at;
  }
  return -1;
}

/* 0 when it cannot be told. */
static int32_t ParentOf(int32_t pid) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* stat = fopen(path, "re");
  if (stat == NULL) return 0;
  const size_t length = fread(text, 1, sizeof text - 1, stat);
  fclose(stat);
  text[length] = '\0';
  const char* name_end = strrchr(text, ')'); /* the name may hold anything; ") S 4711" follows */
  return name_end != NULL && strlen(name_end) > 4 ? atoi(name_end + 4) : 0;
}

enum { kMaxAncestors = 32 };

int cairn_shield_forward_up(int signo) {
  const int fd = atomic_load(&held_fd);
  int32_t ancestors[kMaxAncestors];
  int count = 0, sent = 0;
  if (fd < 0) return 0;
  for (int32_t pid = getppid(); pid > 1 && count < kMaxAncestors && IsOfThisStep(pid); pid = ParentOf(pid))
    ancestors[count++] = pid;
  while (count > 0) {
    const int32_t none = 0, pid = ancestors[--count];
    const off_t place = PlaceOf(fd, pid);
    if (place >= 0 && pwrite(fd, &none, sizeof none, place) == sizeof none && kill(pid, signo) == 0) ++sent;
  }
  return sent;
}

int cairn_shield_forward(int signo) {
  const int fd = OpenFile(0);
  if (fd < 0) return 0;
  int sent = 0;
  struct flock lock = ByteLock(F_WRLCK, kForwardByte);
  if (!OthersAtWork(fd) && fcntl(fd, F_SETLK, &lock) == 0) {
    int32_t pid;
    for (off_t at = 0; pread(fd, &pid, sizeof pid, at) == sizeof pid; at += (off_t)sizeof pid) {
      if (pid > 0 && pid != getpid() && IsOfThisStep(pid) && kill(pid, signo) == 0) ++sent;
    }
    if (ftruncate(fd, 0) != 0) sent = -1;
    RemoveIfUnused(fd);
  }
  close(fd);
  return sent;
}
