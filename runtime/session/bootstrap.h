// Bootstrap: what a rank's environment says about its session (docs/design/bootstrap.md, section 2). Pure but for reading variables.
#ifndef CAIRN_RUNTIME_SESSION_BOOTSTRAP_H_
#define CAIRN_RUNTIME_SESSION_BOOTSTRAP_H_

#include <functional>
#include <optional>
#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/epoch.h"
#include "runtime/control/secret.h"
#include "runtime/settings.h"

namespace cairn {

struct Bootstrap {
  Settings settings;
  Secret token;
  std::string rendezvous;  // "" = none: a single process that was started by hand
  std::string key;         // <job>.<step>.<restart>
  int rank = 0;
  int world_size = 1;
  int ranks_on_node = 1;
  bool first_on_node = true;
  std::string node;
  std::string nodes;  // of the step, as Slurm writes them; "" = not known
  bool epilog_cleans = false;
  Identity identity;
  bool supervised = false;     // `cairn run` starts the next life, where one can go on
  std::string run_life;        // which of its lives this is: <its id>.<number>; "" = it is none
  int min_nodes = 1;           // with fewer it would not
  bool first_life = true;      // a later life never starts fresh unsaid
  bool known_to_save = false;  // an earlier life of this job has saved
};

using GetEnv = std::function<std::optional<std::string>(const std::string&)>;

// Nothing when this process is not meant to be protected: checkpointing is off, or it was not started by `srun --checkpoint` and is no
// single process with CAIRN_CHECKPOINT and CAIRN_DIR of its own. `rank` −1 and `world_size` 0 are taken from the environment. kInvalid for
// values that make no sense.
Result<std::optional<Bootstrap>> ReadBootstrap(const GetEnv& get, int rank, int world_size);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_BOOTSTRAP_H_
