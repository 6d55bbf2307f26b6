/* slurmstepd's side: what a task of a protected step gets besides srun's environment.
 * docs/design/bootstrap.md section 2. */
#ifndef CAIRN_PLUGIN_REMOTE_H_
#define CAIRN_PLUGIN_REMOTE_H_

#include <slurm/spank.h>

#include "runtime/site.h"

/* From slurm_spank_task_init: in the forked task, as the user, just before the exec. Touches nothing but the
 * task's environment, and that only where srun's side has put a token there. Never blocks, and fails the task
 * only where srun's side has refused the step (local.c). */
void cairn_remote_task_init(spank_t spank, const struct cairn_site* site);

#endif /* CAIRN_PLUGIN_REMOTE_H_ */
