#include "plugin/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Points at the value when `argument` is "<key>=…", or at its end when it is "<key>" alone; else NULL. */
static const char* ValueOf(const char* argument, const char* key) {
  size_t n = strlen(key);
  if (strncmp(argument, key, n) != 0) return NULL;
  if (argument[n] == '=') return argument + n + 1;
  return argument[n] == '\0' ? argument + n : NULL;
}

static int IsAbsolute(const char* path) { return *path == '/'; }

static int IsAbsoluteList(const char* dirs) {
  for (const char* p = dirs; p != NULL; p = strchr(p, ':')) {
    if (*p == ':') ++p;
    if (*p != '/') return 0;
  }
  return 1;
}

static int IsPortRange(const char* ports) {
  unsigned lo, hi;
  char end;
  return sscanf(ports, "%5u-%5u%c", &lo, &hi, &end) == 2 && lo >= 1 && lo <= hi && hi <= 65535;
}

/* One setting's default. 1 when the argument is one, else 0. */
static int ParseDefault(struct cairn_site* site, const char* argument) {
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) {
    const char* key = cairn_settings[id].key;
    const char* value = *key != '\0' ? ValueOf(argument, key) : NULL;
    if (value == NULL) continue;
    struct cairn_value parsed;
    if (cairn_value_parse(id, key, value, &parsed, site->fault, sizeof site->fault) == 0)
      site->defaults[id] = value;
    return 1;
  }
  return 0;
}

/* Why the argument is wrong; NULL = it is fine, and stored. */
static const char* ParseOwn(struct cairn_site* site, const char* argument) {
  const char* value;
  struct cairn_value parsed;
  char error[512];
  if ((value = ValueOf(argument, "bin")) != NULL) {
    site->bin = value;
    return IsAbsolute(value) ? NULL : "an absolute path is needed";
  }
  if ((value = ValueOf(argument, "libdir")) != NULL) {
    site->libdir = value;
    /* LD_PRELOAD separates its entries by colons and knows no escape. */
    return IsAbsolute(value) && strchr(value, ':') == NULL ? NULL
                                                           : "an absolute path without a colon is needed";
  }
  if ((value = ValueOf(argument, "dirs")) != NULL) {
    return IsAbsoluteList(value) ? NULL : "absolute directories, separated by colons, are needed";
  }
  if ((value = ValueOf(argument, "off_file")) != NULL) {
    site->off_file = value;
    return IsAbsolute(value) ? NULL : "an absolute path is needed";
  }
  if ((value = ValueOf(argument, "epilog")) != NULL) {
    site->epilog = strcmp(value, "off") != 0;
    return strcmp(value, "on") == 0 || strcmp(value, "off") == 0 ? NULL : "on or off is needed";
  }
  if ((value = ValueOf(argument, "ports")) != NULL)
    return IsPortRange(value) ? NULL : "LO-HI, ports from 1 to 65535, is needed";
  if ((value = ValueOf(argument, "interface")) != NULL)
    return *value != '\0' ? NULL : "an interface's name is needed";
  if ((value = ValueOf(argument, "max_lives_limit")) != NULL) {
    int rc =
        cairn_value_parse(CAIRN_SETTING_max_lives, "max_lives_limit", value, &parsed, error, sizeof error);
    return rc == 0 ? NULL : "a whole number, at least 1, is needed";
  }
  return "no such argument: see docs/reference/plugstack.md";
}

void cairn_site_parse(struct cairn_site* site, int ac, char** av) {
  *site = (struct cairn_site){.bin = CAIRN_DEFAULT_BIN,
                              .libdir = CAIRN_DEFAULT_LIBDIR,
                              .epilog = 1,
                              .argument_count = ac,
                              .arguments = av};
  for (int i = 0; i < ac && *site->fault == '\0'; ++i) {
    if (ParseDefault(site, av[i])) continue;
    const char* why = ParseOwn(site, av[i]);
    if (why != NULL) snprintf(site->fault, sizeof site->fault, "%s: %s", av[i], why);
  }
}
