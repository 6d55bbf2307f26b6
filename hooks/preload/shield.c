/* The shield protocol. The file is /dev/shm/cairn-<uid>/<job>.<node>.shield.<step>; its content is a list of pids (32 bits each).
 *
 *   1. A member holds a read lock on byte 0 as long as it is at work. Read locks are shared, so that any number of members hold one; a POSIX
 *      lock ends with its process, so that a member that was killed shields nobody.
 *   2. A process that Slurm sends SIGTERM asks for the locks on byte 0. None: the signal acts. Else it appends its pid, and asks again,
 *      since the last member may have gone, and read the list, in between. None now: the signal acts. Else the process goes on.
 *   3. A member that leaves, or learns that the job was cancelled, drops its lock.
 *   4. If no lock is left it passes the signal on: takes a write lock on byte 1 (only one process passes on), sends the signal to each listed
 *      pid that still is a process of this step, and truncates the file.
 *
 * A pid that was used again is told from one of this step by the token in its environment.
 *
 * A process loses its lock when it closes *any* descriptor of the file. So a member opens it once, and its handler never does.
 */
#include "hooks/preload/shield.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kAtWorkByte = 0, kForwardByte = 1 };

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
  struct stat info;
  /* The system call itself: the function fstat() came with glibc 2.33. */
  if (syscall(SYS_fstat, folder_fd, &info) != 0) {
    info.st_mode = 0;
  }
  if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0) {
    fd = openat(folder_fd, file, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
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
  return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int cairn_shield_take(void) {
  const int fd = OpenFile(1);
  if (fd < 0) return -1;
  struct flock lock = ByteLock(F_RDLCK, kAtWorkByte);
  if (fcntl(fd, F_SETLK, &lock) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  atomic_store(&held_fd, fd);
  return 0;
}

void cairn_shield_drop(void) {
  const int fd = atomic_exchange(&held_fd, -1);
  if (fd >= 0) close(fd);
}

void cairn_shield_forget(void) { cairn_shield_drop(); }

int cairn_shield_hide(void) {
  const int fd = OpenFile(0);
  if (fd < 0) return 0;
  const int32_t self = getpid();
  const int hidden = OthersAtWork(fd) && write(fd, &self, sizeof self) == sizeof self && OthersAtWork(fd);
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
  }
  close(fd);
  return sent;
}
