/* The removal of <base>/cairn-<uid>/<job>.<node>.*, for base /dev/shm and the site's local= directories:
 *
 *  1. A child becomes the job's user, for good: whatever a hostile user has put there, it can remove no more
 *     than its owner could.
 *  2. It walks by descriptors, and opens every folder with O_NOFOLLOW: a link is removed, never followed.
 *  3. The parent waits at most 10 s, then kills the child: a hanging file system must not hold the node.
 *
 * <base>/cairn-<uid> itself stays: another job of the user may be about to use it.
 */
#include "plugin/epilog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOUND_MS = 10000, POLL_MS = 10, MAX_DEPTH = 16 };

static int BecomeUser(uid_t uid, gid_t gid) {
  if (geteuid() == uid) return 0;
  return setgroups(1, &gid) == 0 && setgid(gid) == 0 && setuid(uid) == 0 ? 0 : -1;
}

static int OpenFolder(int parent, const char* name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int RemoveEntries(int folder, const char* prefix, int depth);

/* Removes an entry and what is below it. 0 or an errno. */
static int Remove(int parent, const char* name, int depth) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  if (depth == MAX_DEPTH) return ELOOP;
  int folder = OpenFolder(parent, name);
  if (folder < 0) return errno;
  int error = RemoveEntries(folder, "", depth + 1);
  if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && error == 0) error = errno;
  return error;
}

/* Removes every entry of the folder whose name begins with `prefix`; goes on after a failure. Takes the
 * descriptor. 0 or the first errno. */
static int RemoveEntries(int folder, const char* prefix, int depth) {
  DIR* stream = fdopendir(folder);
  if (stream == NULL) {
    int error = errno;
    close(folder);
    return error;
  }
  int first_error = 0;
  const struct dirent* entry;
  while ((entry = readdir(stream)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    int error = Remove(dirfd(stream), entry->d_name, depth);
    if (first_error == 0) first_error = error;
  }
  closedir(stream);
  return first_error;
}

/* In the child, as the user. 0 or an errno. */
static int RemoveImages(const char* base, uid_t uid, const char* prefix) {
  char path[4096];
  struct stat status;
  if (snprintf(path, sizeof path, "%s/cairn-%u", base, uid) >= (int)sizeof path) return ENAMETOOLONG;
  int folder = OpenFolder(AT_FDCWD, path);
  if (folder < 0) return errno == ENOENT ? 0 : errno;
  if (fstat(folder, &status) != 0 || status.st_uid != uid) {
    close(folder);
    return EPERM;
  }
  return RemoveEntries(folder, prefix, 0);
}

/* The child's exit status, or -1 when it had to be killed. */
static int AwaitChild(pid_t child) {
  int status;
  for (int waited_ms = 0; waited_ms < BOUND_MS; waited_ms += POLL_MS) {
    pid_t pid = waitpid(child, &status, WNOHANG);
    if (pid == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (pid < 0 && errno != EINTR) return -1;
    poll(NULL, 0, POLL_MS);
  }
  kill(child, SIGKILL);
  return -1;
}

void cairn_job_epilog(spank_t spank, const struct cairn_site* site) {
  uint32_t job;
  uid_t uid;
  gid_t gid;
  char prefix[NAME_MAX + 1];
  const char* node = getenv("SLURMD_NODENAME");
  if (!site->epilog || node == NULL || *node == '\0') return;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS)
    return;
  if (snprintf(prefix, sizeof prefix, "%u.%s.", job, node) >= (int)sizeof prefix) return;

  pid_t child = fork();
  if (child < 0) {
    slurm_error("cairn: epilog of job %u: fork: %s", job, strerror(errno));
    return;
  }
  if (child == 0) {
    if (BecomeUser(uid, gid) != 0) _exit(errno);
    int error = RemoveImages("/dev/shm", uid, prefix);
    const char* local;
    for (int at = 0; (local = cairn_site_next_local(site, &at)) != NULL;) {
      int local_error = RemoveImages(local, uid, prefix);
      if (error == 0) error = local_error;
    }
    _exit(error);
  }
  int error = AwaitChild(child);
  if (error < 0) {
    slurm_error("cairn: epilog of job %u: removing cairn-%u/%s* did not end within 10 s", job, uid, prefix);
  } else if (error > 0) {
    slurm_error("cairn: epilog of job %u: removing cairn-%u/%s*: %s", job, uid, prefix, strerror(error));
  }
}
