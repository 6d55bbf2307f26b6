/* The node's side after a job: where the site wants that, makes durable what the job left in local memory; then removes it. docs/design/bootstrap.md
 * section 3 has the names. */
#ifndef CAIRN_PLUGIN_EPILOG_H_
#define CAIRN_PLUGIN_EPILOG_H_

#include <slurm/spank.h>

#include "runtime/site.h"

/* From slurm_spank_job_epilog, as root, in a process of its own. Takes at most 10 s, and epilog_drain before, and never fails the
 * epilog: Slurm would drain the node for it. What is left over then is logged. */
void cairn_job_epilog(spank_t spank, const struct cairn_site* site);

#endif /* CAIRN_PLUGIN_EPILOG_H_ */
