/* The site's part: the arguments of our line in plugstack.conf.
 *
 *   bin=PATH            the cairn command (default: where it was installed)
 *   libdir=DIR          the library folder with cairn/libcairn_preload.so and libcairn.so (default: likewise)
 *   <key>=VALUE         the site's default of a setting, by the keys of settings.def
 *   max_lives_limit=N   no user's --checkpoint-max-lives goes above it
 *   dirs=DIR[:DIR…]     checkpoints may only be kept in or below these directories
 *   off_file=PATH       while this file exists, steps start without Cairn
 *   epilog=on|off       whether the epilog removes the images that a job left in local memory (default: on)
 *   ports=LO-HI         ports that the host process listens on
 *   interface=NAME      network interface that it listens on
 *
 * All are checked here and handed to the host process as CAIRN_SITE_<KEY>; what is no field below is its business.
 */
#ifndef CAIRN_PLUGIN_SITE_H_
#define CAIRN_PLUGIN_SITE_H_

#include "runtime/settings_value.h"

struct cairn_site {
  const char* bin;
  const char* libdir;
  const char* off_file; /* NULL = none */
  int epilog;
  const char* defaults[CAIRN_SETTING_COUNT]; /* NULL = none */
  int argument_count;                        /* what was parsed, for the host process */
  char** arguments;
  char fault[640]; /* what is wrong with the line; "" = nothing. With a fault no step may be protected: a
                      mistyped limit must not mean no limit */
};

/* Parses the arguments, which must outlive *site. */
void cairn_site_parse(struct cairn_site* site, int ac, char** av);

#endif /* CAIRN_PLUGIN_SITE_H_ */
