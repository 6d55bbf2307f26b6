#include "runtime/site.h"

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

/* Of what `dirs` takes: absolute directories and s3://BUCKET/PREFIX. */
static int IsListOfPlaces(const char* dirs) {
  for (const char* p = dirs; p != NULL; p = strchr(p, ':')) {
    if (*p == ':') ++p;
    if (strncmp(p, "s3://", 5) == 0)
      p += 5; /* past the colon that is the scheme's */
    else if (*p != '/')
      return 0;
    if (*p == '\0' || *p == ':') return 0;
  }
  return 1;
}

static int IsPortRange(const char* ports) {
  unsigned lo, hi;
  char end;
  return sscanf(ports, "%5u-%5u%c", &lo, &hi, &end) == 2 && lo >= 1 && lo <= hi && hi <= 65535;
}

static const char kAbsolutePath[] = "an absolute path is needed";

/* Each says why the value is wrong; NULL = it is fine. */

static const char* CheckPath(const char* value) { return IsAbsolute(value) ? NULL : kAbsolutePath; }

/* LD_PRELOAD separates its entries by colons and knows no escape. */
static const char* CheckLibdir(const char* value) {
  return IsAbsolute(value) && strchr(value, ':') == NULL ? NULL
                                                         : "an absolute path without a colon is needed";
}

static const char* CheckDirs(const char* value) {
  return IsListOfPlaces(value)
             ? NULL
             : "absolute directories or s3://BUCKET/PREFIX, separated by colons, are needed";
}

static const char* CheckOnOff(const char* value) {
  return strcmp(value, "on") == 0 || strcmp(value, "off") == 0 ? NULL : "on or off is needed";
}

static const char* CheckEpilogDrain(const char* value) {
  int64_t ns;
  return cairn_duration_parse(value, &ns) == 0 && ns >= INT64_C(1000000000) && ns <= INT64_C(3600000000000)
             ? NULL
             : "a time from 1s to 1h is needed, for example 60s";
}

static const char* CheckPorts(const char* value) {
  return IsPortRange(value) ? NULL : "LO-HI, ports from 1 to 65535, is needed";
}

static const char* CheckInterface(const char* value) {
  return *value != '\0' ? NULL : "an interface's name is needed";
}

static int IsValueOf(enum cairn_setting_id id, const char* value) {
  struct cairn_value parsed;
  char error[512];
  return cairn_value_parse(id, "", value, &parsed, error, sizeof error) == 0;
}

static const char* CheckLives(const char* value) {
  return IsValueOf(CAIRN_SETTING_max_lives, value) ? NULL : "a whole number, at least 1, is needed";
}

static const char* CheckDrain(const char* value) {
  return IsValueOf(CAIRN_SETTING_drain_limit, value) ? NULL
                                                     : "bytes a second are needed, for example 500MB/s";
}

static const char* CheckLocal(const char* value) {
  return IsValueOf(CAIRN_SETTING_local_limit, value) ? NULL : "a size is needed, for example 64GiB";
}

static const struct {
  const char* name;
  const char* (*check)(const char* value);
  int may_differ; /* between partitions: the others are needed where a job's partition is not known */
} kOwn[CAIRN_SITE_KEY_COUNT] = {[CAIRN_SITE_BIN] = {"bin", CheckPath, 0},
                                [CAIRN_SITE_LIBDIR] = {"libdir", CheckLibdir, 0},
                                [CAIRN_SITE_DIRS] = {"dirs", CheckDirs, 1},
                                [CAIRN_SITE_OFF_FILE] = {"off_file", CheckPath, 0},
                                [CAIRN_SITE_EPILOG] = {"epilog", CheckOnOff, 0},
                                [CAIRN_SITE_EPILOG_DRAIN] = {"epilog_drain", CheckEpilogDrain, 0},
                                [CAIRN_SITE_PORTS] = {"ports", CheckPorts, 0},
                                [CAIRN_SITE_INTERFACE] = {"interface", CheckInterface, 0},
                                [CAIRN_SITE_MAX_LIVES_LIMIT] = {"max_lives_limit", CheckLives, 1},
                                [CAIRN_SITE_MAX_DRAIN] = {"max_drain", CheckDrain, 1},
                                [CAIRN_SITE_MAX_LOCAL] = {"max_local", CheckLocal, 1}};

const char* cairn_site_key_name(enum cairn_site_key key) { return kOwn[key].name; }

/* "partition:NAME:<argument>", in its parts. */
struct scope {
  const char* partition; /* NULL = all */
  size_t partition_length;
  const char* argument;
};

/* 0, or -1 where the form is wrong. */
static int ReadScope(const char* text, struct scope* out) {
  static const char kPrefix[] = "partition:";
  *out = (struct scope){.argument = text};
  if (strncmp(text, kPrefix, strlen(kPrefix)) != 0) return 0;
  out->partition = text + strlen(kPrefix);
  out->partition_length = strcspn(out->partition, ":=");
  out->argument = out->partition + out->partition_length + 1;
  return out->partition_length > 0 && out->partition[out->partition_length] == ':' ? 0 : -1;
}

static int Holds(const struct scope* scope, const char* partition) {
  return partition != NULL && strlen(partition) == scope->partition_length &&
         strncmp(partition, scope->partition, scope->partition_length) == 0;
}

/* Where the argument's value is kept, once it was found good. NULL: why not is in site->fault. */
static const char** Place(struct cairn_site* site, const struct scope* scope, const char* text,
                          const char** value) {
  const char* why = "no such argument: see cairn-plugstack(5)";
  for (int id = 0; id < CAIRN_SETTING_COUNT; ++id) {
    const char* key = cairn_settings[id].key;
    struct cairn_value parsed;
    char name[160]; /* with its partition */
    if (*key == '\0' || (*value = ValueOf(scope->argument, key)) == NULL) continue;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    return cairn_value_parse(id, name, *value, &parsed, site->fault, sizeof site->fault) == 0
               ? &site->defaults[id]
               : NULL;
  }
  for (int key = 0; key < CAIRN_SITE_KEY_COUNT; ++key) {
    if ((*value = ValueOf(scope->argument, kOwn[key].name)) == NULL) continue;
    why = scope->partition != NULL && !kOwn[key].may_differ ? "it cannot differ between partitions"
                                                            : kOwn[key].check(*value);
    if (why == NULL) return &site->own[key];
    break;
  }
  snprintf(site->fault, sizeof site->fault, "%s: %s", text, why);
  return NULL;
}

/* Checks all arguments, and keeps those without a partition, or those of `partition`. */
static void Take(struct cairn_site* site, int of_partition, const char* partition) {
  for (int i = 0; i < site->argument_count && *site->fault == '\0'; ++i) {
    struct scope scope;
    const char* value;
    if (ReadScope(site->arguments[i], &scope) != 0) {
      snprintf(site->fault, sizeof site->fault, "%s: partition:NAME:KEY=VALUE is needed", site->arguments[i]);
      return;
    }
    const char** place = Place(site, &scope, site->arguments[i], &value);
    if (place != NULL && (of_partition ? Holds(&scope, partition) : scope.partition == NULL)) *place = value;
  }
}

void cairn_site_parse(struct cairn_site* site, int ac, char** av, const char* partition) {
  *site = (struct cairn_site){.epilog = 1, .argument_count = ac, .arguments = av};
  Take(site, 0, NULL);
  Take(site, 1, partition);
  site->bin = site->own[CAIRN_SITE_BIN];
  site->libdir = site->own[CAIRN_SITE_LIBDIR];
  site->off_file = site->own[CAIRN_SITE_OFF_FILE];
  if (site->own[CAIRN_SITE_EPILOG] != NULL) site->epilog = strcmp(site->own[CAIRN_SITE_EPILOG], "on") == 0;
  if (site->epilog && site->own[CAIRN_SITE_EPILOG_DRAIN] != NULL)
    (void)cairn_duration_parse(site->own[CAIRN_SITE_EPILOG_DRAIN], &site->epilog_drain_ns);
}

const char* cairn_site_partition(const char* argument, size_t* length) {
  struct scope scope;
  if (ReadScope(argument, &scope) != 0) return NULL;
  *length = scope.partition_length;
  return scope.partition;
}

const char* cairn_site_next_local(const struct cairn_site* site, int* at) {
  while (*at < site->argument_count) {
    struct scope scope;
    if (ReadScope(site->arguments[(*at)++], &scope) != 0) continue;
    const char* value = ValueOf(scope.argument, cairn_settings[CAIRN_SETTING_local].key);
    if (value != NULL && IsAbsolute(value)) return value;
  }
  return NULL;
}
