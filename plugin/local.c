/* The hand-over:
 *
 *  1. Off: done, and nothing of this step differs from one without the plugin. (submit.c has forgotten an outer
 *     step's SLURM_CAIRN_*.)
 *  2. Spawn `cairn host --fd 3` in a session of its own: neither Ctrl-C nor srun's end as such reaches it.
 *  3. Read its lines until `end`, for at most 10 s. `env` lines become srun's environment, and so the tasks'.
 *  4. Keep our end of the pair open: the host reads EOF when srun is gone, in whatever way.
 *
 * A fault of ours on the way is one line for the user and an unprotected step, unless the user wants
 * protection or nothing.
 */
#include "plugin/local.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plugin/options.h"

extern char** environ;

enum { HAND_OVER_BOUND_MS = 10000, HOST_FD = 3 };

const char* cairn_resolve(const struct cairn_site* site, enum cairn_setting_id id) {
  const char* text = cairn_option_value(id);
  if (text != NULL) return text;
  text = getenv(cairn_settings[id].env);
  if (text != NULL && *text != '\0') return text;
  return site->defaults[id] != NULL ? site->defaults[id] : cairn_settings[id].fallback;
}

int cairn_resolves_to_off(const struct cairn_site* site, enum cairn_setting_id id) {
  struct cairn_value value;
  char error[512];
  return cairn_value_parse(id, "", cairn_resolve(site, id), &value, error, sizeof error) == 0 &&
         value.kind == CAIRN_VALUE_OFF;
}

const char* cairn_written(enum cairn_setting_id id, const char* text) {
  if (*text != '\0') return text;
  return cairn_settings[id].type == CAIRN_TYPE_BOOL ? "yes" : "auto";
}

static int StartsWith(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

void cairn_forget_outer_step(void) {
  for (char** variable = environ; *variable != NULL;) {
    char name[256];
    size_t n = strcspn(*variable, "=");
    if (!StartsWith(*variable, "SLURM_CAIRN_") || n >= sizeof name) {
      ++variable;
      continue;
    }
    memcpy(name, *variable, n);
    name[n] = '\0';
    unsetenv(name); /* moves the rest up */
  }
}

/* The tasks leave with code 1 before they become the program (remote.c). Slurm would forget a -1 of an
 * `optional` plugin, and an srun that ended here would leave a step behind that occupies the allocation. */
static void RefuseStep(const char* text) {
  cairn_forget_outer_step();
  setenv("SLURM_CAIRN_REFUSED", "1", 1);
  slurm_spank_log("cairn: %s", text);
}

static void RunUnprotected(const struct cairn_site* site, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

static void RunUnprotected(const struct cairn_site* site, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!cairn_resolves_to_off(site, CAIRN_SETTING_require)) {
    RefuseStep(text);
    return;
  }
  cairn_forget_outer_step();
  slurm_spank_log("cairn: NOT PROTECTED: %s", text);
}

/* --- The host's environment --- */

struct environment {
  char** variables; /* NULL-terminated, owned */
  size_t count;
  int failed;
};

static void Add(struct environment* env, const char* format, ...) __attribute__((format(printf, 2, 3)));

static void Add(struct environment* env, const char* format, ...) {
  char* variable = NULL;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&variable, format, arguments) < 0) variable = NULL;
  va_end(arguments);
  char** grown = realloc(env->variables, (env->count + 2) * sizeof *grown);
  if (grown != NULL) env->variables = grown;
  if (grown == NULL || variable == NULL) {
    free(variable);
    env->failed = 1;
    return;
  }
  env->variables[env->count++] = variable;
  env->variables[env->count] = NULL;
}

static void Free(struct environment* env) {
  for (size_t i = 0; i < env->count; ++i) free(env->variables[i]);
  free(env->variables);
}

static void AddSiteVariable(struct environment* env, const char* key, const char* value) {
  char name[64];
  size_t n = strlen(key);
  if (n >= sizeof name) n = sizeof name - 1;
  for (size_t k = 0; k < n; ++k) name[k] = (char)toupper((unsigned char)key[k]);
  name[n] = '\0';
  Add(env, "CAIRN_SITE_%s=%s", name, value);
}

static void AddSite(struct environment* env, const struct cairn_site* site) {
  for (int key = 0; key < CAIRN_SITE_KEY_COUNT; ++key) {
    if (site->own[key] != NULL) AddSiteVariable(env, cairn_site_key_name(key), site->own[key]);
  }
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) {
    const char* value = site->defaults[id];
    if (value != NULL) AddSiteVariable(env, cairn_settings[id].key, cairn_written(id, value));
  }
}

static void BuildEnvironment(struct environment* env, spank_t spank, const struct cairn_site* site) {
  uint32_t job = 0, step = 0, tasks = 0;
  const char* restart = getenv("SLURM_RESTART_COUNT");
  for (char** variable = environ; *variable != NULL; ++variable) {
    /* The user's preload is for the user's programs; and none of our names may come from elsewhere. */
    if (StartsWith(*variable, "LD_PRELOAD=") || StartsWith(*variable, "CAIRN_PLUGIN_") ||
        StartsWith(*variable, "CAIRN_SITE_") || StartsWith(*variable, "CAIRN_HOST_"))
      continue;
    Add(env, "%s", *variable);
  }
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) {
    const char* value = cairn_option_value(id);
    if (value != NULL) Add(env, "CAIRN_PLUGIN_%s=%s", cairn_settings[id].env, cairn_written(id, value));
  }
  AddSite(env, site);
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS)
    env->failed = 1;
  Add(env, "CAIRN_HOST_JOB=%u", job);
  Add(env, "CAIRN_HOST_STEP=%u", step);
  Add(env, "CAIRN_HOST_RESTART=%s", restart != NULL ? restart : "0");
  Add(env, "CAIRN_HOST_NTASKS=%u", tasks);
}

/* --- Spawning --- */

/* posix_spawn's error, 0 on success. */
static int Spawn(const char* bin, char** variables, int fd, pid_t* pid) {
  char* argv[] = {"cairn", "host", "--fd", "3", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, fd,
                                   HOST_FD); /* first: srun's stdin may be closed, and fd be 0 */
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, HOST_FD + 1);
#endif
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawn(pid, bin, &actions, &attributes, argv, variables);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* --- The host's lines --- */

static int64_t NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct reader {
  int fd;
  int64_t deadline_ms;
  size_t used, taken; /* buffer[taken … used) is unread */
  char buffer[1 << 16];
};

/* The next line, without its end; NULL with *why when none comes. Valid until the next call. */
static char* NextLine(struct reader* r, const char** why) {
  for (;;) {
    char* line = r->buffer + r->taken;
    char* end = memchr(line, '\n', r->used - r->taken);
    if (end != NULL) {
      *end = '\0';
      r->taken = (size_t)(end - r->buffer) + 1;
      return line;
    }
    memmove(r->buffer, line, r->used - r->taken);
    r->used -= r->taken;
    r->taken = 0;
    *why = "its answer is too long";
    if (r->used == sizeof r->buffer) return NULL;
    int64_t left_ms = r->deadline_ms - NowMs();
    struct pollfd ready = {.fd = r->fd, .events = POLLIN};
    int n = left_ms > 0 ? poll(&ready, 1, (int)left_ms) : 0;
    if (n < 0 && errno == EINTR) continue;
    *why = "it did not answer within 10 s";
    if (n == 0) return NULL;
    ssize_t got = n > 0 ? read(r->fd, r->buffer + r->used, sizeof r->buffer - r->used) : -1;
    if (got < 0 && errno == EINTR) continue;
    *why = got == 0 ? "it ended early" : strerror(errno);
    if (got <= 0) return NULL;
    r->used += (size_t)got;
  }
}

/* `env NAME=VALUE`: 0, or -1 for a name that is not ours to set. */
static int TakeVariable(char* assignment) {
  char* value = strchr(assignment, '=');
  if (value == NULL || !StartsWith(assignment, "SLURM_CAIRN_")) return -1;
  *value++ = '\0';
  return setenv(assignment, value, 1);
}

enum outcome { PROTECTED, OFF, REFUSED, FAULT };

/* Takes the host's lines. *text: why, where the outcome is not PROTECTED. */
static enum outcome HandOver(int fd, const char** text) {
  static struct reader reader; /* large for a stack */
  reader = (struct reader){.fd = fd, .deadline_ms = NowMs() + HAND_OVER_BOUND_MS};
  char* line;
  while ((line = NextLine(&reader, text)) != NULL) {
    if (strcmp(line, "end") == 0) return PROTECTED;
    if (StartsWith(line, "fail ") || StartsWith(line, "off ")) {
      *text = strchr(line, ' ') + 1;
      return *line == 'f' ? REFUSED : OFF;
    }
    if (StartsWith(line, "say ")) {
      slurm_spank_log("cairn: %s", line + 4);
    } else if (!StartsWith(line, "env ") || TakeVariable(line + 4) != 0) {
      *text = "it says what this plugin does not understand: their versions differ";
      return FAULT;
    }
  }
  return FAULT;
}

/* Makes the hand-over with a host process that runs. */
static void Receive(const struct cairn_site* site, int fd, pid_t pid) {
  const char* text = NULL;
  enum outcome outcome = HandOver(fd, &text);
  if (outcome == PROTECTED) return; /* fd stays open */
  close(fd);
  switch (outcome) {
    case REFUSED:
      RefuseStep(text);
      return;
    case OFF:
      cairn_forget_outer_step();
      slurm_spank_log("cairn: %s", text);
      return;
    default:
      kill(pid, SIGKILL); /* it may hang; srun has not reaped it, so the pid is still its own */
      RunUnprotected(site, "%s host does not start checkpointing: %s; run `cairn doctor`", site->bin, text);
  }
}

void cairn_local_user_init(spank_t spank, const struct cairn_site* site) {
  if (cairn_resolves_to_off(site, CAIRN_SETTING_checkpoint)) return;
  if (*site->fault != '\0') {
    RunUnprotected(site, "plugstack.conf: %s; tell the administrator", site->fault);
    return;
  }
  if (site->off_file != NULL && access(site->off_file, F_OK) == 0) {
    RunUnprotected(site, "turned off by the administrator (%s exists)", site->off_file);
    return;
  }

  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    RunUnprotected(site, "no socket pair for the host process: %s", strerror(errno));
    return;
  }
  struct environment env = {0};
  pid_t pid = -1;
  BuildEnvironment(&env, spank, site);
  int error = env.failed ? ENOMEM : Spawn(site->bin, env.variables, pair[1], &pid);
  Free(&env);
  close(pair[1]);
  if (error != 0) {
    close(pair[0]);
    RunUnprotected(site, "could not start the host process %s: %s", site->bin, strerror(error));
    return;
  }

  Receive(site, pair[0], pid);
}
