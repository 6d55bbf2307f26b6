#include "runtime/supervisor/host_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "runtime/slurm/spawn.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kHostFd = 3;
constexpr size_t kMaxBytes = 1 << 16;  // of the hand-over

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
  return Status(Code::kUnavailable, program + " host does not start checkpointing: " + status.message());
}

Status HostProcess::Spawn(const std::string& program, std::vector<std::string> environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::FromErrno(errno, "socketpair");
  pair_ = Socket(ends[0]);
  const Socket its(ends[1]);
  SpawnSetup setup{
      .program = program,
      .argv = {"cairn", "host", "--fd", std::to_string(kHostFd)},
      .environment = std::move(environment),
      .descriptors = {{its.fd(), kHostFd}, {-1, STDIN_FILENO}, {-1, STDOUT_FILENO}},  // ours may be 0
      .defaults = {},
      .own_session = true};
  sigfillset(&setup.defaults);
  CAIRN_ASSIGN_OR_RETURN(pid_, cairn::Spawn(std::move(setup)));
  return OkStatus();
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
