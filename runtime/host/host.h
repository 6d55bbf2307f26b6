// HostMain: the host process, one per step, beside srun (docs/design/bootstrap.md section 1).
//
//  1. Resolve the settings, expand and check the directory, make the token, listen.
//  2. Hand the environment over: on the descriptor of the plugin's pair (`env …`, `say …`, `fail …` or `off
//  …`, then `end`), or on stdout.
//  3. Serve, on one loop: rendezvous of the members, the leader's questions about Slurm, the `cairn`
//  command's requests.
//  4. Say NOT PROTECTED when CAIRN_OPEN_WITHIN has passed, or a preemption begins, without any open session.
//  5. Under `cairn run` (CAIRN_RUN_LIFE is set; runtime/supervisor/supervisor.h): use the directory of its first life, and tell it
//  which directory this is.
//  6. Have the newest checkpoint copied to the place of --checkpoint-copy (copier.h).
//  7. End when the pair (or stdin) says EOF, however srun ended. When the leader is gone without a word (killed), say how to resume: no
//  rank is left that could.
#ifndef CAIRN_RUNTIME_HOST_HOST_H_
#define CAIRN_RUNTIME_HOST_HOST_H_

#include <string>

namespace cairn {

struct HostOptions {
  int fd = -1;         // the plugin's pair; -1 = print the environment on stdout and serve until stdin ends
  std::string listen;  // address to listen on; "" = all of them, or the site's
};

// Runs until EOF; returns the exit code. Call it from the program's main thread, with no other threads.
int HostMain(const HostOptions& options);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_HOST_H_
