#include "plugin/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The batch, external and interactive "steps" have ids above this: preloading them would preload bash and
 * srun. */
#define MAX_ORDINARY_STEP 0xfffffff0u

enum { TOKEN_DIGITS = 64 };

static int IsToken(const char* text) {
  return strspn(text, "0123456789abcdefABCDEF") == TOKEN_DIGITS && text[TOKEN_DIGITS] == '\0';
}

/* The task's value of a variable, untruncated; NULL = not set. spank_getenv would cut a long one off. */
static const char* TaskVariable(spank_t spank, const char* name) {
  char** environment = NULL;
  size_t n = strlen(name);
  if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || environment == NULL) return NULL;
  for (; *environment != NULL; ++environment) {
    if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') return *environment + n + 1;
  }
  return NULL;
}

static int Lists(const char* list, const char* path) {
  size_t length = strlen(path);
  for (const char* entry = list; *entry != '\0';) {
    size_t n = strcspn(entry, ": ");
    if (n == length && strncmp(entry, path, n) == 0) return 1;
    entry += n + (entry[n] != '\0');
  }
  return 0;
}

enum side { FRONT, BACK };

/* Adds a path to a variable that lists paths, if it is not there yet (a step inside a step). 0, or -1 with
 * nothing changed. */
static int AddPath(spank_t spank, const char* variable, const char* path, enum side side) {
  const char* list = TaskVariable(spank, variable);
  if (list == NULL || *list == '\0') return spank_setenv(spank, variable, path, 1) == ESPANK_SUCCESS ? 0 : -1;
  if (Lists(list, path)) return 0;
  char* longer = NULL;
  if (asprintf(&longer, "%s:%s", side == FRONT ? path : list, side == FRONT ? list : path) < 0) return -1;
  int rc = spank_setenv(spank, variable, longer, 1) == ESPANK_SUCCESS ? 0 : -1;
  free(longer);
  return rc;
}

static void Warn(spank_t spank, const char* node, const char* what, const char* why) {
  int task = 0; /* one word a node is enough */
  if (spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task != 0) return;
  slurm_spank_log("cairn: NOT PROTECTED: %s: %s %s, so its tasks of this step are not saved", node, what,
                  why);
}

/* The hook for unmodified programs comes before a sitecustomize of the site's, which it runs too. */
static void AttachToTorch(spank_t spank, const struct cairn_site* site, const char* node) {
  const char* attach = TaskVariable(spank, "SLURM_CAIRN_ATTACH");
  if (attach == NULL || strcmp(attach, "torch") != 0) return;
  char hook[4096];
  if (snprintf(hook, sizeof hook, "%s/cairn/python/attach", site->libdir) >= (int)sizeof hook) return;
  if (access(hook, R_OK | X_OK) != 0)
    Warn(spank, node, hook, "cannot be read");
  else if (AddPath(spank, "PYTHONPATH", hook, FRONT) != 0)
    Warn(spank, node, "PYTHONPATH", "could not be set");
}

void cairn_remote_task_init(spank_t spank, const struct cairn_site* site) {
  uint32_t step = MAX_ORDINARY_STEP;
  if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step >= MAX_ORDINARY_STEP) return;
  if (TaskVariable(spank, "SLURM_CAIRN_REFUSED") != NULL) _exit(1); /* local.c has said why */
  const char* token = TaskVariable(spank, "SLURM_CAIRN_TOKEN");
  if (token == NULL) return;
  const char* node = TaskVariable(spank, "SLURMD_NODENAME");
  if (node == NULL) node = "?";
  if (!IsToken(token)) {
    Warn(spank, node, "SLURM_CAIRN_TOKEN", "is no token of Cairn's");
    return;
  }
  char shim[4096], library[4096], number[32];
  if (snprintf(shim, sizeof shim, "%s/cairn/libcairn_preload.so", site->libdir) >= (int)sizeof shim ||
      snprintf(library, sizeof library, "%s/libcairn.so", site->libdir) >= (int)sizeof library)
    return;
  /* The loader would complain at every single exec of the step about a library that is not there: on this
   * node, or in a container that a plugin before this one has entered. */
  if (access(shim, R_OK) != 0) {
    Warn(spank, node, shim, "cannot be read");
    return;
  }
  if (AddPath(spank, "LD_PRELOAD", shim, BACK) != 0) {
    Warn(spank, node, "LD_PRELOAD", "could not be set");
    return;
  }
  snprintf(number, sizeof number, "%ld", (long)getppid());
  spank_setenv(spank, "SLURM_CAIRN_LIB", library, 1);
  spank_setenv(spank, "SLURM_CAIRN_STEPD", number, 1);
  spank_setenv(spank, "SLURM_CAIRN_NODE", node, 1);
  AttachToTorch(spank, site, node);
  if (site->epilog) spank_setenv(spank, "SLURM_CAIRN_EPILOG", "1", 1);
}
