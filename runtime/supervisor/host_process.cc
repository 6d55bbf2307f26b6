#include "runtime/supervisor/host_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace cairn {
namespace {

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> out;
  for (std::string& s : *strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

Result<std::unique_ptr<HostProcess>> HostProcess::Start(const std::string& program,
                                                        std::vector<std::string> environment) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  const Socket in_read(in[0]);
  std::unique_ptr<HostProcess> host(new HostProcess);
  host->life_line_ = Socket(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  const Socket out_read(out[0]);
  Socket out_write(out[1]);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);  // no Ctrl-C
  std::vector<std::string> argv = {"cairn", "host", "--print-env"};
  const int error = posix_spawn(&host->pid_, program.c_str(), &files, &attributes, Pointers(&argv).data(),
                                Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    host->pid_ = -1;
    return Status::FromErrno(error, "run " + program);
  }
  out_write = Socket();
  const std::string text = ReadToEnd(out_read.fd());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    host->variables_.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (host->variables_.empty())
    return Status(Code::kUnavailable, "the host process of the step did not start");
  return host;
}

HostProcess::~HostProcess() {
  life_line_ = Socket();
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace cairn
