#include "runtime/command/donor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/slurm/command.h"
#include "runtime/slurm/spawn.h"

namespace cairn {
namespace {

constexpr int kNoProgram = 127;

// Between fork and exec.
[[noreturn]] void BecomeDonor(pid_t owner, int output, char** argv, char** environment) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != owner) _exit(kNoProgram);  // it has ended before the line above
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvpe(argv[0], argv, environment);
  _exit(kNoProgram);
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

Status RunDonor(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  std::vector<std::string> environment = CommandEnvironment();
  std::vector<char*> argv = ExecPointers(&command), variables = ExecPointers(&environment);
  const pid_t owner = getpid(), pid = fork();
  const int error = errno;
  if (pid == 0) BecomeDonor(owner, ends[1], argv.data(), variables.data());
  close(ends[1]);
  const std::string said = pid < 0 ? "" : ReadAll(ends[0]);
  close(ends[0]);
  if (pid < 0) return Status::FromErrno(error, "run " + command[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OkStatus();
  return Status(Code::kUnavailable,
                command[0] + " failed with " + HowItEnded(status) + ": " + said.substr(0, said.find('\n')));
}

}  // namespace cairn
