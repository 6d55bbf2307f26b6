#include "runtime/slurm/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "runtime/control/socket.h"
#include "runtime/slurm/spawn.h"

extern char** environ;

namespace cairn {
namespace {

constexpr std::chrono::milliseconds kReapInterval{5};
constexpr std::chrono::milliseconds kReapKilledInterval{100};
constexpr size_t kMaxOutputBytes = size_t{16} << 20;

}  // namespace

std::vector<std::string> CommandEnvironment() {
  // The job's number: scontrol that resizes a job would leave a script in the working directory, and salloc would not ask for a new job.
  static constexpr std::string_view kDropped[] = {
      "LD_PRELOAD=",     "SLURM_TIME_FORMAT=", "SLURM_CAIRN_TOKEN=", "TZ=",
      "LC_ALL=",         "SQUEUE_FORMAT=",     "SQUEUE_FORMAT2=",    "SLURM_BITSTR_LEN=",
      "SLURM_CLUSTERS=", "SLURM_JOB_ID=",      "SLURM_JOBID="};
  std::vector<std::string> env = {"TZ=UTC", "LC_ALL=C"};
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry(*e);
    if (std::none_of(std::begin(kDropped), std::end(kDropped),
                     [&](std::string_view d) { return entry.starts_with(d); })) {
      env.emplace_back(entry);
    }
  }
  return env;
}

// Ends itself: once both outputs have ended and the process was reaped, or when the bound has passed.
class CommandRunner::Command {
 public:
  Command(Loop* loop, std::string name, std::function<void(Result<std::string>)> end)
      : loop_(loop),
        name_(std::move(name)),
        end_(std::move(end)),
        bound_(loop, [this] { BoundPassed(); }),
        reap_(loop, [this] { Reap(); }) {}

  // Kills the process if it still runs, and gives it to the caller to be reaped. -1 = there is none.
  pid_t Kill() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    return std::exchange(pid_, -1);
  }

  void Start(std::vector<std::string> argv, std::chrono::milliseconds bound) {
    const Status status = Spawn(std::move(argv));
    if (!status.ok()) {
      failed_ = status;
      reap_.Once(std::chrono::milliseconds(0));
      return;
    }
    bound_.Once(bound);
  }

 private:
  struct Output {
    Socket pipe;  // the reading end
    std::unique_ptr<FdWatcher> watcher;
    std::string text;
  };

  Status Spawn(std::vector<std::string> argv) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0) return Status::FromErrno(errno, "pipe");
    const Socket out_write(out[1]);
    Open(&out_, out[0]);
    if (pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0) return Status::FromErrno(errno, "pipe");
    const Socket err_write(err[1]);
    Open(&err_, err[0]);
    // The child's ends must block; they are descriptions of their own.
    fcntl(out[1], F_SETFL, 0);
    fcntl(err[1], F_SETFL, 0);

    SpawnSetup setup{.program = argv[0],
                     .argv = std::move(argv),
                     .environment = CommandEnvironment(),
                     .descriptors = {{-1, 0}, {out[1], 1}, {err[1], 2}},
                     .defaults = {}};
    // SIGTERM stays ignored where the caller ignores it: Slurm sends it to everything in a batch job, also to the question why.
    sigfillset(&setup.defaults);
    sigdelset(&setup.defaults, SIGTERM);
    CAIRN_ASSIGN_OR_RETURN(pid_, cairn::Spawn(std::move(setup)));
    return OkStatus();
  }

  void Open(Output* output, int fd) {
    output->pipe = Socket(fd);
    output->watcher = std::make_unique<FdWatcher>(loop_, fd, [this, output](bool, bool) { Read(output); });
    output->watcher->Watch(true, false);
  }

  void Read(Output* output) {
    char buffer[65536];
    for (;;) {
      const ssize_t n = read(output->pipe.fd(), buffer, sizeof(buffer));
      if (n > 0) {
        if (output->text.size() < kMaxOutputBytes) output->text.append(buffer, static_cast<size_t>(n));
        continue;
      }
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      output->watcher.reset();
      if (!out_.watcher && !err_.watcher) Reap();
      return;
    }
  }

  void Reap() {
    if (!failed_.ok()) return End(failed_);
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == 0) return reap_.Once(kReapInterval);
    pid_ = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return End(std::move(out_.text));
    const std::string& said = err_.text.empty() ? out_.text : err_.text;
    End(Status(Code::kUnavailable,
               name_ + " failed with " + HowItEnded(status) + ": " + said.substr(0, said.find('\n'))));
  }

  void BoundPassed() { End(Status(Code::kTimeout, name_ + " did not answer in time")); }

  void End(Result<std::string> result) {
    const auto end = std::move(end_);
    end(std::move(result));  // destroys this
  }

  Loop* const loop_;
  const std::string name_;
  std::function<void(Result<std::string>)> end_;
  pid_t pid_ = -1;
  Output out_, err_;
  Status failed_;
  Timer bound_, reap_;
};

CommandRunner::CommandRunner(Loop* loop) : loop_(loop), reap_(loop, [this] { ReapKilled(); }) {}

CommandRunner::~CommandRunner() {
  for (const auto& command : running_) killed_.push_back(command->Kill());
  ReapKilled();
}

// Not by waiting: a process in a system call on a hanging file system dies only when that returns.
void CommandRunner::ReapKilled() {
  std::erase_if(killed_, [](pid_t pid) { return pid < 0 || waitpid(pid, nullptr, WNOHANG) != 0; });
  if (!killed_.empty()) reap_.Once(kReapKilledInterval);
}

void CommandRunner::Run(std::vector<std::string> argv, std::chrono::milliseconds bound, Done done) {
  const std::string name = argv[0] + (argv.size() > 1 ? " " + argv[1] : "");
  const auto command = running_.insert(running_.end(), nullptr);
  *command = std::make_unique<Command>(loop_, name,
                                       [this, command, done = std::move(done)](Result<std::string> result) {
                                         killed_.push_back((*command)->Kill());
                                         running_.erase(command);
                                         ReapKilled();
                                         done(std::move(result));
                                       });
  (*command)->Start(std::move(argv), bound);
}

}  // namespace cairn
