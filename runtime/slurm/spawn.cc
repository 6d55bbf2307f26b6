#include "runtime/slurm/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

namespace cairn {

Result<pid_t> Spawn(SpawnSetup setup) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const auto& [ours, its] : setup.descriptors) {
    if (ours < 0) {
      posix_spawn_file_actions_addopen(&files, its, "/dev/null", O_RDWR, 0);
    } else {
      posix_spawn_file_actions_adddup2(&files, ours, its);
    }
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &setup.defaults);
  const int session = setup.own_session ? POSIX_SPAWN_SETSID : 0;
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, setup.program.c_str(), &files, &attributes,
                                 ExecPointers(&setup.argv).data(), ExecPointers(&setup.environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Status::FromErrno(error, "run " + setup.program);
  return pid;
}

std::vector<char*> ExecPointers(std::vector<std::string>* strings) {
  std::vector<char*> out;
  for (std::string& s : *strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::string HowItEnded(int status) {
  return WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace cairn
