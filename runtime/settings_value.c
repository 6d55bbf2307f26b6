#include "runtime/settings_value.h"

#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cairn_setting cairn_settings[CAIRN_SETTING_COUNT] = {
#define CAIRN_SETTING(id, option, env, key, type, argument, fallback, help) \
  {#id, option, env, key, CAIRN_TYPE_##type, argument, fallback, help},
#include "runtime/settings.def"
#undef CAIRN_SETTING
};

#define DURATION_FORMS "10m, 90s, 1.5h, 500ms, 2d or [D-]HH:MM:SS"
#define MAX_DURATION_NS (3650 * INT64_C(86400000000000))

/* The accepted forms, as every refusal ends. */
static const char* const kForms[] = {
    [CAIRN_TYPE_INTERVAL] = "on, off, auto, a duration (" DURATION_FORMS ") or a number of steps (500steps)",
    [CAIRN_TYPE_DURATION] = "a duration (" DURATION_FORMS ")",
    [CAIRN_TYPE_NOTICE] = "auto or a duration (" DURATION_FORMS ")",
    [CAIRN_TYPE_PATH] = "a path",
    [CAIRN_TYPE_RESUME] = "auto, never, require or the number of a saved step",
    [CAIRN_TYPE_MATCH] = "auto, strict, or a comma-separated list of allow-missing, allow-extra",
    [CAIRN_TYPE_BOOL] = "yes, no, on, off, 1 or 0",
    [CAIRN_TYPE_LOCAL] = "auto, none or an absolute directory",
    [CAIRN_TYPE_TRIGGERS] = "all, or a comma-separated list of preempt, timelimit, request, interval, end",
    [CAIRN_TYPE_KEEP] =
        "last=N, every=DURATION, every=<n>steps and best=N:METRIC:min or :max, joined by "
        "commas, for example last=2,every=6h,best=3:val_loss:min",
    [CAIRN_TYPE_COPY] =
        "none, or a directory or s3://BUCKET/PREFIX, and how often at most, for example "
        "/archive/run7 or s3://lab/run7,every=6h",
    [CAIRN_TYPE_MODE] = "octal permissions from 0600 to 0777 (the owner reads and writes), for example 0640",
    [CAIRN_TYPE_AFTER] = "auto, requeue, wait or exit[=CODE], with CODE from 0 to 255",
    [CAIRN_TYPE_COUNT] = "a whole number, at least 1",
    [CAIRN_TYPE_FILES] = "per-rank, per-node or a whole number, at least 1",
    [CAIRN_TYPE_SIGNAL] =
        "none, USR1, USR2, HUP, ALRM, URG, WINCH, XCPU or PWR, or a number of these or of a "
        "real-time signal",
    [CAIRN_TYPE_ATTACH] = "torch or none",
    [CAIRN_TYPE_EXCHANGE] = "auto, tcp or mpi",
    [CAIRN_TYPE_WRITER] = "auto, io_uring or pwrite",
    [CAIRN_TYPE_STYLE] = "auto, path or virtual",
    [CAIRN_TYPE_RATE] = "none or bytes a second, for example 500MB/s or 1.5GiB/s (kB, MB, GB, KiB, MiB, GiB)",
    [CAIRN_TYPE_SIZE] = "none or a size, for example 64GiB or 1.5TB (kB, MB, GB, TB, KiB, MiB, GiB, TiB)",
    [CAIRN_TYPE_REHEARSE] =
        "on, off, or ranks=N, save-at=STEP, until=STEP, tolerance=X and dir=DIR, joined by commas, for "
        "example ranks=2,until=30",
    [CAIRN_TYPE_STEPS] = "none, or steps above 0 in rising order, joined by commas, for example 20,25",
    [CAIRN_TYPE_TEXT] = "a text",
};

static const char* const kTriggers[] = {"preempt", "timelimit", "request", "interval", "end"};
enum { TRIGGER_COUNT = sizeof kTriggers / sizeof *kTriggers };

static const struct {
  const char* name;
  int number;
} kSignals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2},   {"HUP", SIGHUP},   {"ALRM", SIGALRM},
                {"URG", SIGURG},   {"WINCH", SIGWINCH}, {"XCPU", SIGXCPU}, {"PWR", SIGPWR}};

/* A decimal integer, the whole of text[0 … length). */
static int ParseInteger(const char* text, size_t length, int64_t* out) {
  int64_t value = 0;
  if (length == 0) return -1;
  for (size_t i = 0; i < length; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    if (value > (INT64_MAX - 9) / 10) return -1;
    value = value * 10 + (text[i] - '0');
  }
  *out = value;
  return 0;
}

static size_t Digits(const char* text) { return strspn(text, "0123456789"); }

/* [D-]HH:MM:SS; hours may pass 23 only where no day stands before them. */
static int ParseClock(const char* text, int64_t* nanoseconds) {
  int64_t days = 0, hours, minutes, seconds;
  size_t n = Digits(text);
  int has_days = text[n] == '-';
  if (has_days) {
    if (ParseInteger(text, n, &days) != 0 || days > 3650) return -1;
    text += n + 1;
    n = Digits(text);
  }
  if (text[n] != ':' || ParseInteger(text, n, &hours) != 0 || hours > (has_days ? 23 : 87600)) return -1;
  text += n + 1;
  if (Digits(text) != 2 || text[2] != ':' || ParseInteger(text, 2, &minutes) != 0 || minutes > 59) return -1;
  text += 3;
  if (Digits(text) != 2 || text[2] != '\0' || ParseInteger(text, 2, &seconds) != 0 || seconds > 59) return -1;
  *nanoseconds = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * INT64_C(1000000000);
  return *nanoseconds <= MAX_DURATION_NS ? 0 : -1;
}

struct unit {
  const char* name; /* NULL ends a list of them */
  int64_t scale;
};
static const struct unit kTimeUnits[] = {{"ms", 1000000},
                                         {"s", 1000000000},
                                         {"m", INT64_C(60000000000)},
                                         {"h", INT64_C(3600000000000)},
                                         {"d", INT64_C(86400000000000)},
                                         {NULL, 0}};
static const struct unit kRateUnits[] = {{"kB/s", 1000},     {"MB/s", 1000000},  {"GB/s", 1000000000},
                                         {"KiB/s", 1 << 10}, {"MiB/s", 1 << 20}, {"GiB/s", 1 << 30},
                                         {NULL, 0}};
static const struct unit kSizeUnits[] = {
    {"kB", 1000},     {"MB", 1000000},  {"GB", 1000000000}, {"TB", INT64_C(1000000000000)},
    {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},   {"TiB", INT64_C(1) << 40},
    {NULL, 0}};

/* <number>[.<fraction>]<unit>, at most `max` in all. Integer arithmetic: the locale's decimal point must not
 * matter inside a host program. */
static int ParseUnits(const char* text, const struct unit* units, int64_t max, int64_t* out) {
  size_t n = Digits(text);
  int64_t whole;
  if (ParseInteger(text, n, &whole) != 0) return -1;
  const char* fraction = text + n;
  size_t fraction_digits = 0;
  if (*fraction == '.') {
    fraction_digits = Digits(++fraction);
    if (fraction_digits == 0) return -1;
  }
  const char* unit = fraction + fraction_digits;
  for (; units->name != NULL; ++units) {
    if (strcmp(unit, units->name) != 0) continue;
    if (whole > max / units->scale) return -1;
    int64_t total = whole * units->scale;
    int64_t scale = units->scale;
    for (size_t k = 0; k < fraction_digits && scale > 0; ++k) {
      int digit = fraction[k] - '0';
      total += digit * (scale / 10) + digit * (scale % 10) / 10;
      scale /= 10;
    }
    *out = total;
    return total <= max ? 0 : -1;
  }
  return -1;
}

int cairn_duration_parse(const char* text, int64_t* nanoseconds) {
  return ParseClock(text, nanoseconds) == 0 || ParseUnits(text, kTimeUnits, MAX_DURATION_NS, nanoseconds) == 0
             ? 0
             : -1;
}

const char* cairn_trigger_name(int i) { return i >= 0 && i < TRIGGER_COUNT ? kTriggers[i] : NULL; }

static int Is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static int Set(struct cairn_value* out, enum cairn_value_kind kind, int64_t number) {
  out->kind = kind;
  out->number = number;
  return 0;
}

static int ParseDurationValue(const char* value, struct cairn_value* out) {
  out->kind = CAIRN_VALUE_TIME;
  return cairn_duration_parse(value, &out->number);
}

static int ParseInterval(const char* value, struct cairn_value* out) {
  if (Is(value, "off")) return Set(out, CAIRN_VALUE_OFF, 0);
  if (Is(value, "on")) return Set(out, CAIRN_VALUE_ON, 0);
  if (Is(value, "auto") || *value == '\0') return Set(out, CAIRN_VALUE_AUTO, 0);
  size_t n = Digits(value);
  if (Is(value + n, "steps")) {
    out->kind = CAIRN_VALUE_STEPS;
    return ParseInteger(value, n, &out->number) == 0 && out->number > 0 ? 0 : -1;
  }
  return ParseDurationValue(value, out) == 0 && out->number > 0 ? 0 : -1;
}

/* Bit 1 << i for each names[i] of a comma-separated list. */
static int ParseBits(const char* value, const char* const* names, int count, struct cairn_value* out) {
  Set(out, CAIRN_VALUE_NUMBER, 0);
  for (;;) {
    size_t n = strcspn(value, ",");
    int i = 0;
    while (i < count && !(strlen(names[i]) == n && strncmp(value, names[i], n) == 0)) ++i;
    if (i == count) return -1;
    out->number |= 1 << i;
    if (value[n] == '\0') return 0;
    value += n + 1;
  }
}

static int ParseTriggers(const char* value, struct cairn_value* out) {
  if (Is(value, "all")) return Set(out, CAIRN_VALUE_NUMBER, (1 << TRIGGER_COUNT) - 1);
  return ParseBits(value, kTriggers, TRIGGER_COUNT, out);
}

static int ParseMatch(const char* value, struct cairn_value* out) {
  static const char* const kAllowed[] = {"allow-missing", "allow-extra"};
  if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
  if (Is(value, "strict")) return Set(out, CAIRN_VALUE_NUMBER, 0);
  return ParseBits(value, kAllowed, sizeof kAllowed / sizeof *kAllowed, out);
}

static int ParseSteps(const char* value, struct cairn_value* out) {
  if (Is(value, "none")) return Set(out, CAIRN_VALUE_NONE, 0);
  for (int64_t before = 0, step;; before = step) {
    size_t n = Digits(value);
    if (ParseInteger(value, n, &step) != 0 || step <= before) return -1;
    value += n;
    if (*value == '\0') return Set(out, CAIRN_VALUE_TEXT, 0);
    if (*value++ != ',') return -1;
  }
}

/* <digits>[.<digits>][e[+|-]<digits>] */
static int IsReal(const char* text) {
  size_t n = Digits(text);
  if (n == 0) return 0;
  text += n;
  if (*text == '.') {
    n = Digits(++text);
    if (n == 0) return 0;
    text += n;
  }
  if (*text == 'e') {
    ++text;
    if (*text == '+' || *text == '-') ++text;
    n = Digits(text);
    if (n == 0) return 0;
    text += n;
  }
  return *text == '\0';
}

/* <key>=<value> */
static int IsOfRehearse(const char* part) {
  static const char* const kNumbers[] = {"ranks=", "save-at=", "until="};
  for (size_t i = 0; i < sizeof kNumbers / sizeof *kNumbers; ++i) {
    size_t n = strlen(kNumbers[i]);
    int64_t number;
    if (strncmp(part, kNumbers[i], n) == 0)
      return ParseInteger(part + n, strlen(part + n), &number) == 0 && number > 0;
  }
  if (strncmp(part, "tolerance=", 10) == 0) return IsReal(part + 10);
  return strncmp(part, "dir=", 4) == 0 && part[4] != '\0';
}

static int ParseRehearse(const char* value, struct cairn_value* out) {
  if (Is(value, "off")) return Set(out, CAIRN_VALUE_OFF, 0);
  if (*value == '\0' || Is(value, "on") || Is(value, "auto")) return Set(out, CAIRN_VALUE_ON, 0);
  for (;;) {
    char part[PATH_MAX + 8];
    size_t n = strcspn(value, ",");
    if (n >= sizeof part) return -1;
    memcpy(part, value, n);
    part[n] = '\0';
    if (!IsOfRehearse(part)) return -1;
    if (value[n] == '\0') return Set(out, CAIRN_VALUE_TEXT, 0);
    value += n + 1;
  }
}

int cairn_metric_name_is_valid(const char* name, size_t length) {
  if (length < 1 || length > 100) return 0;
  for (size_t i = 0; i < length; ++i) {
    if (name[i] <= ' ' || name[i] > '~' || name[i] == ',' || name[i] == ':') return 0;
  }
  return 1;
}

/* <n>:METRIC:min|max */
static int ParseBest(const char* text, struct cairn_keep_rule* rule) {
  size_t n = Digits(text);
  if (text[n] != ':' || ParseInteger(text, n, &rule->number) != 0) return -1;
  rule->kind = CAIRN_KEEP_BEST;
  rule->metric = text + n + 1;
  rule->metric_length = strcspn(rule->metric, ":");
  const char* order = rule->metric + rule->metric_length;
  rule->highest = strcmp(order, ":max") == 0;
  if (!rule->highest && strcmp(order, ":min") != 0) return -1;
  return cairn_metric_name_is_valid(rule->metric, rule->metric_length) ? 0 : -1;
}

static int ParseEvery(const char* text, struct cairn_keep_rule* rule) {
  size_t n = Digits(text);
  rule->kind = strcmp(text + n, "steps") == 0 ? CAIRN_KEEP_EVERY_STEPS : CAIRN_KEEP_EVERY_TIME;
  return rule->kind == CAIRN_KEEP_EVERY_STEPS ? ParseInteger(text, n, &rule->number)
                                              : cairn_duration_parse(text, &rule->number);
}

int cairn_keep_next(const char** text, struct cairn_keep_rule* rule) {
  char part[160];
  size_t n = strcspn(*text, ",");
  int failed = -1;
  if (n >= sizeof part) return -1;
  memcpy(part, *text, n);
  part[n] = '\0';
  memset(rule, 0, sizeof *rule);
  if (strncmp(part, "last=", 5) == 0) {
    rule->kind = CAIRN_KEEP_LAST;
    failed = ParseInteger(part + 5, strlen(part + 5), &rule->number);
  } else if (strncmp(part, "every=", 6) == 0) {
    failed = ParseEvery(part + 6, rule);
  } else if (strncmp(part, "best=", 5) == 0) {
    failed = ParseBest(part + 5, rule);
  }
  if (failed || rule->number < 1) return -1;
  if (rule->metric != NULL) rule->metric = *text + (rule->metric - part);
  if ((*text)[n] == ',' && (*text)[n + 1] == '\0') return -1;
  *text += (*text)[n] == ',' ? n + 1 : n;
  return 0;
}

static int ParseKeep(const char* value, struct cairn_value* out) {
  struct cairn_keep_rule rule;
  do {
    if (cairn_keep_next(&value, &rule) != 0) return -1;
  } while (*value != '\0');
  return Set(out, CAIRN_VALUE_TEXT, 0);
}

int cairn_copy_parse(const char* text, size_t* place_length, int64_t* every_ns) {
  size_t n = strcspn(text, ",");
  *place_length = n;
  *every_ns = 0;
  if (strncmp(text, "s3://", 5) == 0) {
    size_t bucket = strcspn(text + 5, "/,");
    size_t prefix = 5 + bucket + 1;
    if (bucket == 0 || text[5 + bucket] != '/' || prefix >= n) return -1;
  } else {
    const char* scheme = strstr(text, "://");
    if (n == 0 || (scheme != NULL && scheme < text + n)) return -1;
  }
  if (text[n] == '\0') return 0;
  text += n + 1;
  if (strncmp(text, "every=", 6) != 0) return -1;
  return cairn_duration_parse(text + 6, every_ns) == 0 && *every_ns > 0 ? 0 : -1;
}

static int ParseCopy(const char* value, struct cairn_value* out) {
  size_t place_length;
  int64_t every_ns;
  if (Is(value, "none")) return Set(out, CAIRN_VALUE_NONE, 0);
  return cairn_copy_parse(value, &place_length, &every_ns) == 0 ? Set(out, CAIRN_VALUE_TEXT, 0) : -1;
}

static int ParseMode(const char* value, struct cairn_value* out) {
  size_t n = strlen(value);
  if (n < 3 || n > 4 || strspn(value, "01234567") != n) return -1;
  Set(out, CAIRN_VALUE_NUMBER, strtol(value, NULL, 8));
  return out->number >= 0600 && out->number <= 0777 ? 0 : -1;
}

static int ParseAfter(const char* value, struct cairn_value* out) {
  if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
  if (Is(value, "requeue")) return Set(out, CAIRN_VALUE_REQUEUE, 0);
  if (Is(value, "wait")) return Set(out, CAIRN_VALUE_WAIT, 0);
  if (Is(value, "exit")) return Set(out, CAIRN_VALUE_EXIT, 0);
  if (strncmp(value, "exit=", 5) != 0) return -1;
  out->kind = CAIRN_VALUE_EXIT;
  return ParseInteger(value + 5, strlen(value + 5), &out->number) == 0 && out->number <= 255 ? 0 : -1;
}

static int ParseCount(const char* value, struct cairn_value* out) {
  out->kind = CAIRN_VALUE_NUMBER;
  return ParseInteger(value, strlen(value), &out->number) == 0 && out->number >= 1 && out->number <= INT_MAX
             ? 0
             : -1;
}

static int ParseSignal(const char* value, struct cairn_value* out) {
  int64_t number = 0;
  if (Is(value, "none")) return Set(out, CAIRN_VALUE_NONE, 0);
  int is_number = ParseInteger(value, strlen(value), &number) == 0;
  if (is_number && number >= SIGRTMIN && number <= SIGRTMAX) return Set(out, CAIRN_VALUE_NUMBER, number);
  const char* name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;
  for (size_t i = 0; i < sizeof kSignals / sizeof *kSignals; ++i) {
    if (is_number ? number == kSignals[i].number : Is(name, kSignals[i].name))
      return Set(out, CAIRN_VALUE_NUMBER, kSignals[i].number);
  }
  return -1;
}

static int ParseBytes(const char* value, const struct unit* units, struct cairn_value* out) {
  if (Is(value, "none")) return Set(out, CAIRN_VALUE_NONE, 0);
  out->kind = CAIRN_VALUE_NUMBER;
  return ParseUnits(value, units, INT64_MAX / 1024, &out->number) == 0 && out->number > 0 ? 0 : -1;
}

static int ParseBool(const char* value, struct cairn_value* out) {
  if (*value == '\0' || Is(value, "yes") || Is(value, "on") || Is(value, "1"))
    return Set(out, CAIRN_VALUE_ON, 0);
  if (Is(value, "no") || Is(value, "off") || Is(value, "0")) return Set(out, CAIRN_VALUE_OFF, 0);
  return -1;
}

static int ParseByType(enum cairn_setting_type type, const char* value, struct cairn_value* out) {
  switch (type) {
    case CAIRN_TYPE_INTERVAL:
      return ParseInterval(value, out);
    case CAIRN_TYPE_NOTICE:
      if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
      return ParseDurationValue(value, out);
    case CAIRN_TYPE_DURATION:
      return ParseDurationValue(value, out);
    case CAIRN_TYPE_RESUME:
      if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
      if (Is(value, "never")) return Set(out, CAIRN_VALUE_NEVER, 0);
      if (Is(value, "require")) return Set(out, CAIRN_VALUE_REQUIRE, 0);
      out->kind = CAIRN_VALUE_NUMBER;
      return ParseInteger(value, strlen(value), &out->number);
    case CAIRN_TYPE_BOOL:
      return ParseBool(value, out);
    case CAIRN_TYPE_LOCAL:
      if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
      if (Is(value, "none")) return Set(out, CAIRN_VALUE_NONE, 0);
      return *value == '/' ? Set(out, CAIRN_VALUE_TEXT, 0) : -1;
    case CAIRN_TYPE_MATCH:
      return ParseMatch(value, out);
    case CAIRN_TYPE_TRIGGERS:
      return ParseTriggers(value, out);
    case CAIRN_TYPE_KEEP:
      return ParseKeep(value, out);
    case CAIRN_TYPE_COPY:
      return ParseCopy(value, out);
    case CAIRN_TYPE_MODE:
      return ParseMode(value, out);
    case CAIRN_TYPE_AFTER:
      return ParseAfter(value, out);
    case CAIRN_TYPE_COUNT:
      return ParseCount(value, out);
    case CAIRN_TYPE_FILES:
      if (Is(value, "per-rank")) return Set(out, CAIRN_VALUE_NUMBER, 0);
      if (Is(value, "per-node")) return Set(out, CAIRN_VALUE_NUMBER, 1);
      return ParseCount(value, out);
    case CAIRN_TYPE_SIGNAL:
      return ParseSignal(value, out);
    case CAIRN_TYPE_ATTACH:
      if (Is(value, "none")) return Set(out, CAIRN_VALUE_NONE, 0);
      return Is(value, "torch") ? Set(out, CAIRN_VALUE_TEXT, 0) : -1;
    case CAIRN_TYPE_EXCHANGE:
      if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
      if (Is(value, "tcp")) return Set(out, CAIRN_VALUE_TCP, 0);
      if (Is(value, "mpi")) return Set(out, CAIRN_VALUE_MPI, 0);
      return -1;
    case CAIRN_TYPE_WRITER:
      if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
      if (Is(value, "io_uring")) return Set(out, CAIRN_VALUE_IO_URING, 0);
      if (Is(value, "pwrite")) return Set(out, CAIRN_VALUE_PWRITE, 0);
      return -1;
    case CAIRN_TYPE_STYLE:
      if (Is(value, "auto")) return Set(out, CAIRN_VALUE_AUTO, 0);
      if (Is(value, "path")) return Set(out, CAIRN_VALUE_PATH_STYLE, 0);
      if (Is(value, "virtual")) return Set(out, CAIRN_VALUE_VIRTUAL_STYLE, 0);
      return -1;
    case CAIRN_TYPE_RATE:
      return ParseBytes(value, kRateUnits, out);
    case CAIRN_TYPE_SIZE:
      return ParseBytes(value, kSizeUnits, out);
    case CAIRN_TYPE_REHEARSE:
      return ParseRehearse(value, out);
    case CAIRN_TYPE_STEPS:
      return ParseSteps(value, out);
    case CAIRN_TYPE_PATH:
    case CAIRN_TYPE_TEXT:
      return *value != '\0' ? Set(out, CAIRN_VALUE_TEXT, 0) : -1;
  }
  return -1;
}

/* The likely slips. Writes a sentence, or nothing. */
static void Hint(enum cairn_setting_type type, const char* value, char* hint, size_t size) {
  size_t n = Digits(value);
  int takes_time = type == CAIRN_TYPE_INTERVAL || type == CAIRN_TYPE_DURATION || type == CAIRN_TYPE_NOTICE;
  int64_t number;
  hint[0] = '\0';
  if (takes_time && n > 0 && n <= 18 && ParseInteger(value, n, &number) == 0) {
    const char* rest = value + n;
    int digits = (int)n;
    const char* steps = type == CAIRN_TYPE_INTERVAL ? "steps" : NULL;
    if (type == CAIRN_TYPE_INTERVAL && number == 0) {
      snprintf(hint, size, "It must be more than 0.");
    } else if (*rest == '\0' ||
               (strlen(rest) == 1 && isalpha((unsigned char)*rest) && !strchr("smhdSMHD", *rest))) {
      snprintf(hint, size, "%.*s what? %.*ss, %.*sm, %.*sh%s%.*s%s.", digits, value, digits, value, digits,
               value, digits, value, steps ? " or " : "", steps ? digits : 0, value, steps ? steps : "");
    } else if (steps && (strncmp(rest, "st", 2) == 0 || Is(rest, "it") || Is(rest, "iter"))) {
      snprintf(hint, size, "Did you mean %.*ssteps?", digits, value);
    } else if (isalpha((unsigned char)*rest) && strchr("smhd", tolower((unsigned char)*rest))) {
      snprintf(hint, size, "Did you mean %.*s%c?", digits, value, tolower((unsigned char)*rest));
    }
  } else if (type == CAIRN_TYPE_KEEP && n > 0 && value[n] == '\0') {
    snprintf(hint, size, "Did you mean last=%s?", value);
  } else if (type == CAIRN_TYPE_LOCAL && *value != '\0') {
    snprintf(hint, size, "A relative directory would differ from node to node.");
  } else if (type == CAIRN_TYPE_RATE && n > 0 && Is(value + n, "")) {
    snprintf(hint, size, "%s what? %skB/s, %sMB/s or %sGB/s.", value, value, value, value);
  } else if (type == CAIRN_TYPE_SIGNAL && (Is(value, "TERM") || Is(value, "SIGTERM") || Is(value, "15"))) {
    snprintf(hint, size, "TERM means save already.");
  }
}

int cairn_value_parse(enum cairn_setting_id id, const char* name, const char* value, struct cairn_value* out,
                      char* error, size_t size) {
  enum cairn_setting_type type = cairn_settings[id].type;
  out->number = 0;
  if (ParseByType(type, value, out) == 0) return 0;
  char hint[160];
  Hint(type, value, hint, sizeof hint);
  snprintf(error, size, "%s=%.80s is not accepted.%s%s Accepted: %s", name, value, *hint ? " " : "", hint,
           kForms[type]);
  for (char* c = error; *c != '\0'; ++c) {
    if (iscntrl((unsigned char)*c)) *c = '?';
  }
  return -1;
}
