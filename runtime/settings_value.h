/* The table of settings and the one parser of their values, in C for the plugin and the runtime alike.
 *
 * Pure: no allocation, no locale, no I/O, no globals that change; any thread. A value is refused with a text
 * of one line that names the setting as its user wrote it, the value, what is wrong with it and all forms
 * that are accepted.
 *
 * Types of settings.def and their forms:
 *   INTERVAL  on | off | auto | DURATION above 0 | <n>steps; "" = auto (the bare option)
 *   DURATION  <number>{ms,s,m,h,d}, with or without a fraction, or [D-]HH:MM:SS as Slurm writes it; at most
 *             3650 days
 *   NOTICE    auto | DURATION
 *   PATH      any, not empty
 *   RESUME    auto | never | require | <step>
 *   MATCH     auto | strict, or a comma-separated list of allow-missing, allow-extra
 *   BOOL      yes | no | 1 | 0 | on | off; "" = yes (the bare option)
 *   LOCAL     auto | none | absolute directory
 *   TRIGGERS  all, or a comma-separated list of preempt, timelimit, request, interval, end
 *   KEEP      a comma-separated list of rules: last=<n>, every=DURATION, every=<n>steps, best=<n>:METRIC:min|max,
 *             all numbers above 0. See cairn_keep_next
 *   COPY      none | PLACE[,every=DURATION above 0]; PLACE is a directory without a comma, or s3://BUCKET/PREFIX. See cairn_copy_parse
 *   MODE      octal permissions, 0600 to 0777: a save writes and a later life reads
 *   AFTER     auto | requeue | wait | exit[=CODE], CODE 0 to 255
 *   COUNT     integer >= 1
 *   FILES     per-rank (the number 0) | per-node (1) | integer >= 1
 *   SIGNAL    none | a name with or without SIG | its number. Only signals whose meaning is a program's own:
 *             USR1, USR2, HUP, ALRM, URG, WINCH, XCPU, PWR, and real-time ones by number
 *   ATTACH    torch | none
 *   EXCHANGE  auto | tcp | mpi
 *   WRITER    auto | io_uring | pwrite
 *   STYLE     auto | path | virtual
 *   RATE      none | <number>{kB,MB,GB,KiB,MiB,GiB}/s above 0, with or without a fraction
 *   SIZE      none | <number>{kB,MB,GB,TB,KiB,MiB,GiB,TiB} above 0, with or without a fraction
 *   REHEARSE  off | on | auto, or a comma-separated list of options of `cairn rehearse`: ranks=<n>, save-at=<step>, until=<step>,
 *             all above 0, tolerance=<number>, dir=DIR without a comma; "" = on (the bare option)
 *   STEPS     none | a comma-separated list of steps, each above 0 and above the one before it
 *   TEXT      any, not empty
 */
#ifndef CAIRN_RUNTIME_SETTINGS_VALUE_H_
#define CAIRN_RUNTIME_SETTINGS_VALUE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cairn_setting_id {
#define CAIRN_SETTING(id, option, env, key, type, argument, fallback, help) CAIRN_SETTING_##id,
#include "runtime/settings.def"
#undef CAIRN_SETTING
  CAIRN_SETTING_COUNT
};

enum cairn_setting_type {
  CAIRN_TYPE_INTERVAL,
  CAIRN_TYPE_DURATION,
  CAIRN_TYPE_NOTICE,
  CAIRN_TYPE_PATH,
  CAIRN_TYPE_RESUME,
  CAIRN_TYPE_MATCH,
  CAIRN_TYPE_BOOL,
  CAIRN_TYPE_LOCAL,
  CAIRN_TYPE_TRIGGERS,
  CAIRN_TYPE_KEEP,
  CAIRN_TYPE_COPY,
  CAIRN_TYPE_MODE,
  CAIRN_TYPE_AFTER,
  CAIRN_TYPE_COUNT,
  CAIRN_TYPE_FILES,
  CAIRN_TYPE_SIGNAL,
  CAIRN_TYPE_ATTACH,
  CAIRN_TYPE_EXCHANGE,
  CAIRN_TYPE_WRITER,
  CAIRN_TYPE_STYLE,
  CAIRN_TYPE_RATE,
  CAIRN_TYPE_SIZE,
  CAIRN_TYPE_REHEARSE,
  CAIRN_TYPE_STEPS,
  CAIRN_TYPE_TEXT
};

/* A row of settings.def; every field as it is there. */
struct cairn_setting {
  const char* id;
  const char* option;
  const char* env;
  const char* key;
  enum cairn_setting_type type;
  const char* argument;
  const char* fallback;
  const char* help;
};

extern const struct cairn_setting cairn_settings[CAIRN_SETTING_COUNT];

/* What a value says. `number` belongs to the kinds that name it, else it is 0. */
enum cairn_value_kind {
  CAIRN_VALUE_TEXT, /* PATH, TEXT, ATTACH, KEEP, COPY, STEPS, REHEARSE's list, LOCAL's directory: the value itself */
  CAIRN_VALUE_OFF,
  CAIRN_VALUE_ON,
  CAIRN_VALUE_AUTO,
  CAIRN_VALUE_NONE,
  CAIRN_VALUE_NEVER,
  CAIRN_VALUE_REQUIRE,
  CAIRN_VALUE_REQUEUE,
  CAIRN_VALUE_WAIT,
  CAIRN_VALUE_TCP,
  CAIRN_VALUE_MPI,
  CAIRN_VALUE_IO_URING,
  CAIRN_VALUE_PWRITE,
  CAIRN_VALUE_PATH_STYLE,
  CAIRN_VALUE_VIRTUAL_STYLE,
  CAIRN_VALUE_EXIT,  /* number: the exit code */
  CAIRN_VALUE_TIME,  /* number: nanoseconds */
  CAIRN_VALUE_STEPS, /* number: steps */
  CAIRN_VALUE_NUMBER /* number: a step, a count, permissions, a signal, bytes (a second), or bits 1 << i of TRIGGERS or
                        MATCH in the order above (0: strict) */
};

struct cairn_value {
  enum cairn_value_kind kind;
  int64_t number;
};

/* Parses `value` for setting `id` into *out. Returns 0, or -1 with the refusal in error[0 … size), always
 * terminated. name: the setting as its user wrote it, for the refusal: "--checkpoint", "CAIRN_CHECKPOINT", …
 */
int cairn_value_parse(enum cairn_setting_id id, const char* name, const char* value, struct cairn_value* out,
                      char* error, size_t size);

/* One rule of KEEP. A checkpoint is kept when any rule keeps it. */
enum cairn_keep_kind {
  CAIRN_KEEP_LAST,        /* number: so many of the newest */
  CAIRN_KEEP_EVERY_TIME,  /* number: nanoseconds; the first one saved in each such stretch of time */
  CAIRN_KEEP_EVERY_STEPS, /* number: steps; the first one at or after each multiple of it */
  CAIRN_KEEP_BEST         /* number: so many with the lowest or highest value of a metric */
};

struct cairn_keep_rule {
  enum cairn_keep_kind kind;
  int64_t number;
  const char* metric; /* BEST: its name, a part of the text that was parsed */
  size_t metric_length;
  int highest; /* BEST: 1 = max, 0 = min */
};

/* Parses the rule at *text and moves *text past it, to the next one or to the end (""). Returns 0, or -1. */
int cairn_keep_next(const char** text, struct cairn_keep_rule* rule);

/* Whether a metric may be called so: 1 to 100 printable ASCII characters without space, comma and colon. */
int cairn_metric_name_is_valid(const char* name, size_t length);

/* COPY, but for none: the length of PLACE, with which the text begins, and the nanoseconds of `every`, 0 where it is left out. Returns 0, or
 * -1. */
int cairn_copy_parse(const char* text, size_t* place_length, int64_t* every_ns);

/* DURATION alone. Returns 0, or -1. */
int cairn_duration_parse(const char* text, int64_t* nanoseconds);

/* "preempt", … of bit 1 << i of TRIGGERS; NULL past the last. */
const char* cairn_trigger_name(int i);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_RUNTIME_SETTINGS_VALUE_H_ */
