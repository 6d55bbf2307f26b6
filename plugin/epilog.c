/* After a job, on each of its nodes. Where the site has set epilog_drain=TIME, what the job left complete and not durable is drained first:
 *
 *  1. A child becomes the job's user, for good, with the user's groups; root opens no path of the user's.
 *  2. In a session of its own, with an empty environment, at the lowest priority for CPU and disk, it executes `cairn drain`, once for each base
 *     (session/left_drain.cc has what that does).
 *  3. The parent waits TIME at most, for all bases together, then kills the child. Whatever came of it, the removal follows.
 *
 * Then the removal of <base>/cairn-<uid>/<job>.<node>.*, for base /dev/shm and the site's local= directories:
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
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REMOVAL_BOUND_MS = 10000, KILL_BOUND_MS = 1000, POLL_MS = 10, MAX_DEPTH = 16 };

struct job {
  uint32_t id;
  uid_t uid;
  gid_t gid;
  const char* node;
};

static int64_t NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The user's groups are looked up where `all_groups`; a user without a name has the job's alone. */
static int BecomeUser(const struct job* job, int all_groups) {
  if (geteuid() == job->uid) return 0;
  const struct passwd* user = all_groups ? getpwuid(job->uid) : NULL;
  int grouped = user != NULL ? initgroups(user->pw_name, job->gid) : setgroups(1, &job->gid);
  return grouped == 0 && setgid(job->gid) == 0 && setuid(job->uid) == 0 ? 0 : -1;
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

/* The child's wait status; -1 when it has not ended by `end_ms`. */
static int AwaitUntil(pid_t child, int64_t end_ms) {
  int status;
  for (;;) {
    pid_t pid = waitpid(child, &status, WNOHANG);
    if (pid == child) return status;
    if ((pid < 0 && errno != EINTR) || NowMs() >= end_ms) return -1;
    poll(NULL, 0, POLL_MS);
  }
}

/* The child's exit status, or -1 when it was killed: it has until `end_ms`, and the kernel a second to be rid of it. */
static int AwaitChild(pid_t child, int64_t end_ms) {
  int status = AwaitUntil(child, end_ms);
  if (status == -1) {
    kill(child, SIGKILL);
    (void)AwaitUntil(child, NowMs() + KILL_BOUND_MS);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Behind the job's processes and those of other jobs; a refusal leaves it as it was. */
static void LowerPriority(void) {
  enum { WHO_PROCESS = 1, CLASS_BEST_EFFORT = 2, CLASS_SHIFT = 13, LOWEST = 7 };
  (void)setpriority(PRIO_PROCESS, 0, 19);
  (void)syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_BEST_EFFORT << CLASS_SHIFT | LOWEST);
}

/* In the child, as the user. Returns when it could not be executed. */
static void ExecDrain(const char* bin, const char* base, const struct job* job, int64_t within_ms) {
  char id[16], within[32];
  char* environment[] = {"PATH=/usr/bin:/bin", NULL};
  snprintf(id, sizeof id, "%u", job->id);
  snprintf(within, sizeof within, "%lldms", (long long)within_ms);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
      dup2(null, STDERR_FILENO) < 0)
    return;
  (void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0U,
                0); /* slurmd's, should it have any without O_CLOEXEC */
  execle(bin, bin, "drain", "--job", id, "--node", job->node, "--local", base, "--within", within,
         (char*)NULL, environment);
}

static void Drain(const struct cairn_site* site, const char* base, const struct job* job, int64_t end_ms) {
  int64_t within_ms = end_ms - NowMs();
  if (within_ms <= 0) return;
  pid_t child = fork();
  if (child < 0) {
    slurm_error("cairn: epilog of job %u: fork: %s", job->id, strerror(errno));
    return;
  }
  if (child == 0) {
    (void)setsid();
    LowerPriority();
    if (BecomeUser(job, 1) != 0 || chdir("/") != 0) _exit(EXIT_FAILURE);
    ExecDrain(site->bin, base, job, within_ms);
    _exit(EXIT_FAILURE);
  }
  int status = AwaitChild(child, end_ms);
  if (status < 0) {
    slurm_error("cairn: epilog of job %u: draining %s/cairn-%u/%u.%s.* was stopped: its time is over",
                job->id, base, job->uid, job->id, job->node);
  } else if (status > 0) {
    slurm_error("cairn: epilog of job %u: nothing of %s/cairn-%u/%u.%s.* became durable, or not all of it",
                job->id, base, job->uid, job->id, job->node);
  }
}

static void DrainAll(const struct cairn_site* site, const struct job* job) {
  if (site->epilog_drain_ns == 0 || *site->fault != '\0') return;
  int64_t end_ms = NowMs() + site->epilog_drain_ns / 1000000;
  Drain(site, "/dev/shm", job, end_ms);
  const char* local;
  for (int at = 0; (local = cairn_site_next_local(site, &at)) != NULL;) Drain(site, local, job, end_ms);
}

static void RemoveAll(const struct cairn_site* site, const struct job* job) {
  char prefix[NAME_MAX + 1];
  if (snprintf(prefix, sizeof prefix, "%u.%s.", job->id, job->node) >= (int)sizeof prefix) return;
  pid_t child = fork();
  if (child < 0) {
    slurm_error("cairn: epilog of job %u: fork: %s", job->id, strerror(errno));
    return;
  }
  if (child == 0) {
    if (BecomeUser(job, 0) != 0) _exit(errno);
    int error = RemoveImages("/dev/shm", job->uid, prefix);
    const char* local;
    for (int at = 0; (local = cairn_site_next_local(site, &at)) != NULL;) {
      int local_error = RemoveImages(local, job->uid, prefix);
      if (error == 0) error = local_error;
    }
    _exit(error);
  }
  int error = AwaitChild(child, NowMs() + REMOVAL_BOUND_MS);
  if (error < 0) {
    slurm_error("cairn: epilog of job %u: removing cairn-%u/%s* did not end within 10 s", job->id, job->uid,
                prefix);
  } else if (error > 0) {
    slurm_error("cairn: epilog of job %u: removing cairn-%u/%s*: %s", job->id, job->uid, prefix,
                strerror(error));
  }
}

void cairn_job_epilog(spank_t spank, const struct cairn_site* site) {
  struct job job = {.node = getenv("SLURMD_NODENAME")};
  if (!site->epilog || job.node == NULL || *job.node == '\0') return;
  if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_UID, &job.uid) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_GID, &job.gid) != ESPANK_SUCCESS)
    return;
  DrainAll(site, &job);
  RemoveAll(site, &job);
}
