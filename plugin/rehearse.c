/* `srun --checkpoint-rehearse=ranks=2 -n4 ./prog` becomes `cairn rehearse --ranks=2 -- srun --checkpoint-rehearse=ranks=2 -n4 ./prog`:
 *
 *  1. What came by options goes into variables: the options of sbatch and salloc reach an srun by variables of Slurm's, which a rehearsal drops.
 *  2. Signals are as a command finds them: srun has blocked some for its threads.
 *  3. exec, with srun's own command line behind the `--`. The rehearsal takes Cairn's options out of it and runs it twice.
 */
#include "plugin/rehearse.h"

#include <errno.h>
#include <signal.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/local.h"
#include "plugin/options.h"

struct words {
  char** word; /* NULL-terminated */
  size_t count;
  int failed;
};

/* Takes the word, which was allocated. */
static void Append(struct words* words, char* word) {
  char** grown = realloc(words->word, (words->count + 2) * sizeof *grown);
  if (grown == NULL || word == NULL) {
    words->failed = 1;
    return;
  }
  words->word = grown;
  words->word[words->count++] = word;
  words->word[words->count] = NULL;
}

/* "ranks=2,until=30" as --ranks=2 --until=30. */
static void AppendOptions(struct words* words, const char* list) {
  while (*list != '\0') {
    size_t n = strcspn(list, ",");
    char* option = NULL;
    Append(words, asprintf(&option, "--%.*s", (int)n, list) < 0 ? NULL : option);
    list += list[n] == ',' ? n + 1 : n;
  }
}

static void AppendOwnCommandLine(struct words* words) {
  FILE* file = fopen("/proc/self/cmdline", "re");
  char* word = NULL;
  size_t capacity = 0, before = words->count;
  while (file != NULL && getdelim(&word, &capacity, '\0', file) > 0) Append(words, strdup(word));
  free(word);
  if (file != NULL) fclose(file);
  if (words->count == before) words->failed = 1;
}

/* What the user sees, and could have typed. */
static void Say(const struct words* words) {
  char line[2048];
  size_t used = 0;
  for (size_t i = 0; i < words->count && used < sizeof line; ++i)
    used += (size_t)snprintf(line + used, sizeof line - used, " %s", words->word[i]);
  slurm_spank_log("cairn: a rehearsal in place of the step:%s%s", line, used < sizeof line ? "" : " ...");
}

static void GiveOptionsAsVariables(void) {
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) {
    const char* value = cairn_option_value(id);
    if (value != NULL) setenv(cairn_settings[id].env, cairn_written(id, value), 1);
  }
}

static void UnblockSignals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

void cairn_rehearse_instead(const struct cairn_site* site) {
  if (cairn_resolves_to_off(site, CAIRN_SETTING_rehearse)) return;
  const char* list = cairn_resolve(site, CAIRN_SETTING_rehearse);
  struct words words = {0};
  Append(&words, strdup("cairn"));
  Append(&words, strdup("rehearse"));
  if (strchr(list, '=') != NULL) AppendOptions(&words, list); /* else it is bare, or says on */
  Append(&words, strdup("--"));
  AppendOwnCommandLine(&words);
  if (!words.failed) {
    Say(&words);
    GiveOptionsAsVariables();
    UnblockSignals();
    execv(site->bin, words.word);
  }
  slurm_error("cairn: no rehearsal: %s could not be run: %s; run `cairn doctor`", site->bin,
              words.failed ? "no memory, or no /proc" : strerror(errno));
  exit(3); /* as `cairn rehearse` where the two runs could not be made */
}
