/* The site's part: the arguments of our line in plugstack.conf, for the plugin and for who checks the line. Pure.
 *
 *   bin=PATH            the cairn command (default: where it was installed)
 *   libdir=DIR          the library folder with cairn/libcairn_preload.so and libcairn.so (default: likewise)
 *   <key>=VALUE         the site's default of a setting, by the keys of settings.def
 *   max_lives_limit=N   no user's --checkpoint-max-lives goes above it
 *   max_drain=RATE      nor CAIRN_DRAIN_LIMIT above this one; "none" is above any
 *   max_local=SIZE      nor CAIRN_LOCAL_LIMIT
 *   dirs=DIR[:DIR…]     checkpoints may only be kept in or below these directories
 *   off_file=PATH       while this file exists, steps start without Cairn
 *   epilog=on|off       whether the epilog removes the images that a job left in local memory (default: on)
 *   epilog_drain=TIME   before that it makes durable what the job left complete and not durable, for that long at most;
 *                       without it, or with epilog=off, nothing is drained
 *   ports=LO-HI         ports that the host process listens on
 *   interface=NAME      network interface that it listens on
 *
 *   partition:NAME:<argument>   holds in jobs of that partition, in place of the same argument without: a default,
 *                               a limit or dirs=
 *
 * Of an argument that is given twice the last one counts. All are checked here and handed to the host process as
 * CAIRN_SITE_<KEY>; what is no field of its own below is its business.
 */
#ifndef CAIRN_RUNTIME_SITE_H_
#define CAIRN_RUNTIME_SITE_H_

#include "runtime/settings_value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments that are no setting's default. */
enum cairn_site_key {
  CAIRN_SITE_BIN,
  CAIRN_SITE_LIBDIR,
  CAIRN_SITE_DIRS,
  CAIRN_SITE_OFF_FILE,
  CAIRN_SITE_EPILOG,
  CAIRN_SITE_EPILOG_DRAIN,
  CAIRN_SITE_PORTS,
  CAIRN_SITE_INTERFACE,
  CAIRN_SITE_MAX_LIVES_LIMIT,
  CAIRN_SITE_MAX_DRAIN,
  CAIRN_SITE_MAX_LOCAL,
  CAIRN_SITE_KEY_COUNT
};

struct cairn_site {
  const char* bin;      /* NULL = where it was installed */
  const char* libdir;   /* likewise */
  const char* off_file; /* NULL = none */
  int epilog;
  int64_t epilog_drain_ns;                   /* 0 = it does not drain */
  const char* own[CAIRN_SITE_KEY_COUNT];     /* NULL = not given */
  const char* defaults[CAIRN_SETTING_COUNT]; /* NULL = none */
  int argument_count;
  char** arguments;
  char fault[640]; /* what is wrong with the line; "" = nothing. With a fault no step may be protected: a
                      mistyped limit must not mean no limit */
};

/* Parses the arguments, which must outlive *site, for a job of `partition`; NULL = not known, or none in
 * particular. */
void cairn_site_parse(struct cairn_site* site, int ac, char** av, const char* partition);

/* What the line calls an argument. */
const char* cairn_site_key_name(enum cairn_site_key key);

/* The partition that an argument is for alone, which is not terminated; NULL = for all. */
const char* cairn_site_partition(const char* argument, size_t* length);

/* The directories that local= names, for whichever partition, one by one: *at begins at 0. NULL = no more. */
const char* cairn_site_next_local(const struct cairn_site* site, int* at);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_RUNTIME_SITE_H_ */
