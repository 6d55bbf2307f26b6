#include "runtime/supervisor/host_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace cairn {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kHostFd = 3;
constexpr size_t kMaxBytes = 1 << 16;  // of the hand-over

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> out;
  for (std::string& s : *strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// More of what it says, behind `text`.
Status ReadMore(int fd, Clock::time_point until, std::string* text) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    const int n = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (n == 0) return {Code::kUnavailable, "it does not answer"};
    char buffer[4096];
    const ssize_t got = n > 0 ? read(fd, buffer, sizeof buffer) : -1;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Status::FromErrno(errno, "read");
    if (got == 0) return {Code::kUnavailable, "it ended early"};
    text->append(buffer, static_cast<size_t>(got));
    return text->size() <= kMaxBytes ? OkStatus() : Status(Code::kUnavailable, "its answer is too long");
  }
}

}  // namespace

Result<std::unique_ptr<HostProcess>> HostProcess::Start(const std::string& program,
                                                        std::vector<std::string> environment,
                                                        milliseconds bound) {
  std::unique_ptr<HostProcess> host(new HostProcess);
  Status status = host->Spawn(program, std::move(environment));
  if (status.ok()) status = host->TakeHandOver(bound);
  if (status.ok()) return host;
  if (host->pid_ > 0) kill(host->pid_, SIGKILL);  // it may hang
  if (status.code() == Code::kInvalid) return status;
  return Status(Code::kUnavailable, "the host process " + program + " is of no use: " + status.message());
}

Status HostProcess::Spawn(const std::string& program, std::vector<std::string> environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::FromErrno(errno, "socketpair");
  pair_ = Socket(ends[0]);
  const Socket its(ends[1]);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, its.fd(), kHostFd);  // first: our stdin may be closed
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);  // no Ctrl-C
  std::vector<std::string> argv = {"cairn", "host", "--fd", std::to_string(kHostFd)};
  const int error = posix_spawn(&pid_, program.c_str(), &files, &attributes, Pointers(&argv).data(),
                                Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return OkStatus();
  pid_ = -1;
  return Status::FromErrno(error, "run it");
}

Status HostProcess::TakeHandOver(milliseconds bound) {
  const auto until = Clock::now() + bound;
  std::string text;
  for (size_t at = 0;;) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      CAIRN_RETURN_IF_ERROR(ReadMore(pair_.fd(), until, &text));
      continue;
    }
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line == "end") return OkStatus();
    if (line.starts_with("fail ")) return {Code::kInvalid, line.substr(5)};
    if (line.starts_with("off ")) return {Code::kUnavailable, line.substr(4)};
    if (line.starts_with("say ")) {
      std::fprintf(stderr, "cairn: %s\n", line.c_str() + 4);
    } else if (line.starts_with("env SLURM_CAIRN_") && line.find('=') != std::string::npos) {
      variables_.push_back(line.substr(4));
    } else {
      return {Code::kUnavailable, "it says what `cairn run` does not understand: their versions differ"};
    }
  }
}

HostProcess::~HostProcess() {
  pair_ = Socket();
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace cairn
