/* The options of srun, sbatch and salloc: one for each row of settings.def that has an option.
 *
 * Values are checked where they are given, so that a bad one is refused at submit. Slurm calls back more than
 * once for one option, first for values inherited through the environment and then for the command line's:
 * the last value wins. Main thread only.
 */
#ifndef CAIRN_PLUGIN_OPTIONS_H_
#define CAIRN_PLUGIN_OPTIONS_H_

#include <slurm/spank.h>

#include "runtime/settings_value.h"

/* Registers them; from slurm_spank_init only. 0 or -1. */
int cairn_options_register(spank_t spank);

/* The value that came by the option, checked, "" for a bare one; NULL = not given. Valid until the next
 * callback. */
const char* cairn_option_value(enum cairn_setting_id id);

#endif /* CAIRN_PLUGIN_OPTIONS_H_ */
