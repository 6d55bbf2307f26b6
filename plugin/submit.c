#include "plugin/submit.h"

#include <errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/local.h"

static void CheckVariable(enum cairn_setting_id id) {
  const char* text = getenv(cairn_settings[id].env);
  char error[512];
  struct cairn_value value;
  if (text == NULL || *text == '\0') return;
  if (cairn_value_parse(id, cairn_settings[id].env, text, &value, error, sizeof error) == 0) return;
  slurm_error("cairn: %s", error);
  exit(1);
}

/* Calls `visit` with each line of the file, or each of its NUL-terminated strings, until one returns 1;
 * returns whether one did. */
static int AnyRecord(const char* path, int delimiter, int (*visit)(const char* record)) {
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  char* record = NULL;
  size_t capacity = 0;
  int found = 0;
  while (!found && getdelim(&record, &capacity, delimiter, file) > 0) found = visit(record);
  free(record);
  fclose(file);
  return found;
}

static int NamesOpenMode(const char* argument) {
  return strncmp(argument, "--open-mode", strlen("--open-mode")) == 0;
}

static int DirectiveNamesOpenMode(const char* line) {
  return strncmp(line, "#SBATCH", 7) == 0 && strstr(line, "--open-mode") != NULL;
}

static int IsScript(const char* path) {
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  int is_script = getc(file) == '#' && getc(file) == '!';
  fclose(file);
  return is_script;
}

/* An argument of sbatch that is a script, and says how its output is opened. sbatch shows plugins neither the
 * script nor its options. */
static int ScriptNamesOpenMode(const char* argument) {
  struct stat status;
  if (stat(argument, &status) != 0 || !S_ISREG(status.st_mode))
    return 0; /* a pipe's content is not ours to consume */
  return IsScript(argument) && AnyRecord(argument, '\n', DirectiveNamesOpenMode);
}

static void WarnOfTruncatedOutput(void) {
  static const char kSelf[] = "/proc/self/cmdline";
  if (getenv("SBATCH_OPEN_MODE") != NULL || AnyRecord(kSelf, '\0', NamesOpenMode) ||
      AnyRecord(kSelf, '\0', ScriptNamesOpenMode))
    return;
  slurm_spank_log(
      "cairn: each time this job is requeued its output file is begun anew; --open-mode=append keeps what "
      "earlier lives printed "
      "(nothing to do where the site sets JobFileAppend=1)");
}

void cairn_submit_check(const struct cairn_site* site) {
  cairn_forget_outer_step(); /* later would be too late: srun hands on what is unset in local_user_init all the same */
  CheckVariable(CAIRN_SETTING_checkpoint);
  CheckVariable(CAIRN_SETTING_rehearse);
  if (cairn_resolves_to_off(site, CAIRN_SETTING_checkpoint)) return;
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) CheckVariable(id);
  if (strcmp(program_invocation_short_name, "sbatch") == 0) WarnOfTruncatedOutput();
}
