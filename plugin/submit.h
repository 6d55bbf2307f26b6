/* What srun, sbatch and salloc check once all options are known, before anything is allocated. */
#ifndef CAIRN_PLUGIN_SUBMIT_H_
#define CAIRN_PLUGIN_SUBMIT_H_

#include "runtime/site.h"

/* From slurm_spank_init_post_opt, as the user. Refuses bad values of the CAIRN_* environment like those of
 * options, by ending the command (exit code 1); drops an outer step's variables; tells sbatch's user, once,
 * that a requeued job starts its output anew. */
void cairn_submit_check(const struct cairn_site* site);

#endif /* CAIRN_PLUGIN_SUBMIT_H_ */
