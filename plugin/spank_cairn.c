/* The SPANK entry: which part of Cairn acts in which of Slurm's processes. A C file, since spank.h makes a
 * C++ compiler hide or mangle the very symbols that Slurm looks for.
 *
 * Hooks return 0 or -1: before 25.05 Slurm takes a positive value for success. What plugstack.conf says on
 * our line comes with every hook (site.h), so nothing is kept between hooks but the options' values
 * (options.h).
 */
#include <slurm/spank.h>
#include <stdlib.h>

#include "plugin/epilog.h"
#include "plugin/local.h"
#include "plugin/options.h"
#include "plugin/rehearse.h"
#include "plugin/remote.h"
#include "plugin/submit.h"
#include "runtime/site.h"

SPANK_PLUGIN(cairn, 1)

static void ReadSite(struct cairn_site* site, int ac, char** av, const char* partition) {
  cairn_site_parse(site, ac, av, partition);
  if (site->bin == NULL) site->bin = CAIRN_DEFAULT_BIN;
  if (site->libdir == NULL) site->libdir = CAIRN_DEFAULT_LIBDIR;
}

int slurm_spank_init(spank_t spank, int ac, char** av) {
  (void)ac;
  (void)av;
  switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
    case S_CTX_REMOTE: /* decides nothing; an option that is not registered here would be logged as unknown */
      return cairn_options_register(spank);
    default:
      return 0;
  }
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char** av) {
  (void)spank;
  struct cairn_site site;
  switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
      ReadSite(&site, ac, av, NULL);
      cairn_submit_check(&site);
      if (spank_context() == S_CTX_LOCAL) cairn_rehearse_instead(&site);
      return 0;
    default:
      return 0;
  }
}

int slurm_spank_local_user_init(spank_t spank, int ac, char** av) {
  struct cairn_site site;
  ReadSite(&site, ac, av, getenv("SLURM_JOB_PARTITION"));
  cairn_local_user_init(spank, &site);
  return 0;
}

int slurm_spank_task_init(spank_t spank, int ac, char** av) {
  struct cairn_site site;
  ReadSite(&site, ac, av, NULL);
  cairn_remote_task_init(spank, &site);
  return 0;
}

int slurm_spank_job_epilog(spank_t spank, int ac, char** av) {
  struct cairn_site site;
  ReadSite(&site, ac, av, NULL);
  cairn_job_epilog(spank, &site);
  return 0;
}
