/* srun's side of --checkpoint-rehearse. */
#ifndef CAIRN_PLUGIN_REHEARSE_H_
#define CAIRN_PLUGIN_REHEARSE_H_

#include "runtime/site.h"

/* From slurm_spank_init_post_opt of srun, after cairn_submit_check: srun has no allocation and no step yet. Where a rehearsal is asked for, by
 * the option or by CAIRN_REHEARSE, this process becomes one, or says why not and ends; else returns. */
void cairn_rehearse_instead(const struct cairn_site* site);

#endif /* CAIRN_PLUGIN_REHEARSE_H_ */
