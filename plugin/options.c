#include "plugin/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* values[CAIRN_SETTING_COUNT];

const char* cairn_option_value(enum cairn_setting_id id) { return values[id]; }

/* Copies argument `index` of this process's command line; 0, or -1 when there is none or it does not fit. */
static int CommandLineArgument(int index, char* out, size_t size) {
  FILE* file = fopen("/proc/self/cmdline", "re");
  if (file == NULL) return -1;
  char* argument = NULL;
  size_t capacity = 0;
  ssize_t length = -1;
  for (int i = 0; i <= index && (length = getdelim(&argument, &capacity, '\0', file)) > 0; ++i) {
  }
  int rc = length > 0 && (size_t)length < size ? 0 : -1;
  if (rc == 0) memcpy(out, argument, strlen(argument) + 1);
  free(argument);
  fclose(file);
  return rc;
}

/* `srun --checkpoint 10m ./prog` gives --checkpoint no value and runs the program "10m": getopt takes an
 * optional value only behind "=". While Slurm's getopt loop calls back, optind is the argument that follows.
 */
static int ValueStandsApart(const char* option, char* next, size_t size) {
  char current[SPANK_OPTION_MAXLEN + 3];
  char error[512];
  struct cairn_value value;
  if (optind < 2 || CommandLineArgument(optind - 1, current, sizeof current) != 0) return 0;
  if (strncmp(current, "--", 2) != 0 || strcmp(current + 2, option) != 0) return 0;
  if (CommandLineArgument(optind, next, size) != 0 || *next == '\0') return 0;
  return strspn(next, "0123456789.") == strlen(next) ||
         cairn_value_parse(CAIRN_SETTING_checkpoint, option, next, &value, error, sizeof error) == 0;
}

static int OnOption(int id, const char* argument, int remote) {
  const struct cairn_setting* setting = &cairn_settings[id];
  if (remote) return 0; /* srun's side has decided; a task only sees its environment */
  /* A bare option comes as NULL, as "" or, where it passed through the environment, as "(null)". */
  const char* text = argument == NULL || strcmp(argument, "(null)") == 0 ? "" : argument;
  char name[SPANK_OPTION_MAXLEN + 3], error[512], next[64];
  struct cairn_value value;
  snprintf(name, sizeof name, "--%s", setting->option);
  if (*text == '\0' && id == CAIRN_SETTING_checkpoint &&
      ValueStandsApart(setting->option, next, sizeof next)) {
    slurm_error(
        "cairn: %s %s: the value must be joined with '=': %s=%s. As written, '%s' would be run as the "
        "program",
        name, next, name, next, next);
    return -1;
  }
  if (cairn_value_parse(id, name, text, &value, error, sizeof error) != 0) {
    slurm_error("cairn: %s", error);
    return -1;
  }
  char* copy = strdup(text);
  if (copy == NULL) return -1;
  free(values[id]);
  values[id] = copy;
  return 0;
}

/* getopt's has_arg: "" takes none, "[…]" may be left out. */
static int HasArgument(const char* argument) {
  return *argument == '\0' ? no_argument : *argument == '[' ? optional_argument : required_argument;
}

int cairn_options_register(spank_t spank) {
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) {
    const struct cairn_setting* setting = &cairn_settings[id];
    if (*setting->option == '\0') continue;
    /* Slurm copies the structure and the strings. */
    struct spank_option option = {.name = (char*)setting->option,
                                  .arginfo = *setting->argument != '\0' ? (char*)setting->argument : NULL,
                                  .usage = (char*)setting->help,
                                  .has_arg = HasArgument(setting->argument),
                                  .val = id,
                                  .cb = OnOption};
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
      slurm_error("cairn: could not register --%s", setting->option);
      return -1;
    }
  }
  return 0;
}
