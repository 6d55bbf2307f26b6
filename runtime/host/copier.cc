#include "runtime/host/copier.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/control/socket.h"
#include "runtime/slurm/spawn.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReapInterval{5};
constexpr milliseconds kLongestPause = std::chrono::hours(1);
constexpr size_t kMaxOutputBytes = size_t{1} << 20;

// What `cairn push --json` says.
struct Report {
  std::optional<int64_t> step;  // of the checkpoint that is in the place
  uint64_t bytes = 0;
  std::optional<Nanoseconds> too_early;
  std::string kind, why;  // of a failure
};

Result<Report> ReadReport(const std::string& text) {
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    Report out;
    for (const auto& one : document.value("checkpoints", nlohmann::json::array())) {
      out.step = one.at("step").get<int64_t>();
      out.bytes = one.at("bytes").get<uint64_t>();
    }
    if (document.contains("too_early_ns"))
      out.too_early = Nanoseconds(document.at("too_early_ns").get<int64_t>());
    const auto failure = [&out](const nlohmann::json& what) {
      out.kind = what.at("code").get<std::string>();
      out.why = what.at("message").get<std::string>();
    };
    // One that was pruned meanwhile is followed by a newer one, of which Due tells.
    for (const auto& one : document.value("passed_over", nlohmann::json::array())) {
      if (one.at("code") != CodeName(Code::kNotFound)) failure(one);
    }
    if (document.contains("error")) failure(document.at("error"));
    return out;
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::kInternal, error.what());
  }
}

}  // namespace

Copier::Copier(Loop* loop, CopierOptions options)
    : loop_(loop),
      options_(std::move(options)),
      failure_pause_(options_.first_pause),
      pause_(loop,
             [this] {
               pausing_ = false;
               Begin();
             }),
      reap_(loop, [this] { Reap(); }) {}

Copier::~Copier() {
  Stop();
  Close();
}

void Copier::Due(int64_t step) {
  newest_ = step;
  due_ = true;
  Begin();
}

void Copier::Stop() {
  stopped_ = true;
  if (pid_ > 0) kill(pid_, SIGTERM);
}

std::string Copier::LastWord() const {
  if (newest_ == 0 || state_.step == newest_) return "";
  return options_.copy.to + " has no copy of step " + std::to_string(newest_) + " yet. `cairn push " +
         options_.dir + "` makes one";
}

void Copier::Begin() {
  if (!due_ || stopped_ || pausing_ || pid_ > 0) return;
  due_ = false;
  begun_ = newest_;
  if (const Status status = Spawn(); !status.ok()) {
    Close();
    return Failed(std::string(CodeName(status.code())), status.message());
  }
  Tell();
}

Status Copier::Spawn() {
  int out = -1, err = -1;
  CAIRN_RETURN_IF_ERROR(Listen(&out_, &out));
  const Socket out_end(out);
  CAIRN_RETURN_IF_ERROR(Listen(&err_, &err));
  const Socket err_end(err);
  SpawnSetup setup{.program = options_.program,
                   .argv = {"cairn", "push", "--json", "--gently"},
                   .environment = options_.environment,
                   .descriptors = {{-1, 0}, {out, 1}, {err, 2}},
                   .defaults = {},
                   .own_session = true};
  if (options_.copy.every.count() > 0)
    setup.argv.push_back("--every=" + std::to_string(options_.copy.every.count() / 1000000) + "ms");
  for (const std::string& argument : {"--keep=" + options_.keep, options_.dir, options_.copy.to})
    setup.argv.push_back(argument);
  // SIGPIPE stays ignored: it goes on without a reader when this process has ended.
  sigfillset(&setup.defaults);
  sigdelset(&setup.defaults, SIGPIPE);
  CAIRN_ASSIGN_OR_RETURN(pid_, cairn::Spawn(std::move(setup)));
  return OkStatus();
}

Status Copier::Listen(Output* output, int* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  *write_end = ends[1];
  output->fd = ends[0];
  output->text.clear();
  output->watcher = std::make_unique<FdWatcher>(loop_, ends[0], [this, output](bool, bool) { Read(output); });
  output->watcher->Watch(true, false);
  return OkStatus();
}

void Copier::Read(Output* output) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(output->fd, buffer, sizeof(buffer));
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

void Copier::Reap() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == 0) return reap_.Once(kReapInterval);
  pid_ = -1;
  Close();
  stopped_ ? Tell() : Ended(status);
}

void Copier::Close() {
  for (Output* output : {&out_, &err_}) {
    output->watcher.reset();
    if (output->fd >= 0) close(output->fd);
    output->fd = -1;
  }
}

void Copier::Ended(int status) {
  const Result<Report> report = ReadReport(out_.text);
  if (!report.ok())
    return Failed("died", "cairn push ended with " + HowItEnded(status) + ": " +
                              err_.text.substr(0, err_.text.find('\n')));
  if (report->step) {
    state_.step = report->step;
    state_.bytes = report->bytes;
  }
  if (!report->kind.empty()) return Failed(report->kind, report->why);
  state_.failure.clear();
  failure_pause_ = options_.first_pause;
  const Nanoseconds pause = report->too_early.value_or(report->step ? options_.copy.every : Nanoseconds(0));
  if (pause.count() > 0) {
    pausing_ = true;
    pause_.Once(std::chrono::ceil<milliseconds>(pause));
  }
  Tell();
  Begin();
}

void Copier::Failed(const std::string& kind, const std::string& why) {
  state_.failure = why;
  if (said_.insert(kind).second)
    options_.say("no copy of step " + std::to_string(begun_) + " in " + options_.copy.to + ": " + why +
                 ". The job goes on, and the copy is tried again");
  due_ = true;
  pausing_ = true;
  pause_.Once(failure_pause_);
  failure_pause_ = std::min(2 * failure_pause_, kLongestPause);
  Tell();
}

void Copier::Tell() {
  state_.under_way = pid_ > 0 ? std::optional(begun_) : std::nullopt;
  options_.tell(state_);
}

}  // namespace cairn
