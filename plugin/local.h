/* srun's side: starts the host process and hands what it says to the tasks. docs/design/bootstrap.md,
 * section 1, is the contract. */
#ifndef CAIRN_PLUGIN_LOCAL_H_
#define CAIRN_PLUGIN_LOCAL_H_

#include <slurm/spank.h>

#include "runtime/site.h"

/* From slurm_spank_local_user_init, as the user: srun has the allocation and the step's id, and nothing is
 * launched yet. Waits for the host process at most 10 s. When the step must not run (a refused value or
 * directory, or no protection where --checkpoint-require was given), it says so and makes the tasks leave
 * before they start the program. */
void cairn_local_user_init(spank_t spank, const struct cairn_site* site);

/* What a setting resolves to here: option, environment, site default, fallback. Never NULL. */
const char* cairn_resolve(const struct cairn_site* site, enum cairn_setting_id id);

/* Whether it resolves to "off" or "no". */
int cairn_resolves_to_off(const struct cairn_site* site, enum cairn_setting_id id);

/* The value of an option as a variable has it: a bare option has no text of its own, and an empty variable is as good as none. */
const char* cairn_written(enum cairn_setting_id id, const char* text);

/* Unsets every SLURM_CAIRN_*: a step or job that is started inside a step must not take itself for that one. */
void cairn_forget_outer_step(void);

#endif /* CAIRN_PLUGIN_LOCAL_H_ */
