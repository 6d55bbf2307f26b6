#include "runtime/supervisor/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/catalog/lives.h"
#include "runtime/control/socket.h"
#include "runtime/io/random.h"
#include "runtime/settings.h"
#include "runtime/slurm/requeue.h"
#include "runtime/slurm/run_now.h"
#include "runtime/slurm/spawn.h"
#include "runtime/supervisor/host_process.h"
#include "runtime/supervisor/judge.h"
#include "runtime/supervisor/plugin_options.h"
#include "runtime/supervisor/srun_options.h"

extern char** environ;

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kSlurmBound{5000};
constexpr milliseconds kUpdateBound{30000};
constexpr milliseconds kHandOverBound{10000};
constexpr seconds kAskPause{2};
constexpr seconds kSecondInterrupt{1};  // srun's bound
// Slurm looks after preempted jobs every half minute; one that is still there so long after its grace time keeps its nodes.
constexpr seconds kGraceMargin{60};
constexpr seconds kGraceUnknown{600};  // of a job whose end of grace time is not known

void Say(const std::string& line) { std::fprintf(stderr, "cairn: %s\n", line.c_str()); }

Result<JobRecord> ReadJob(uint32_t job) {
  CAIRN_ASSIGN_OR_RETURN(const std::string text,
                         RunNow({"scontrol", "show", "job", "-o", std::to_string(job)}, kSlurmBound));
  return ParseJobRecord(text, job);
}

Status ShrinkTo(const JobRecord& job, const std::string& nodes) {
  const bool number = nodes.find_first_not_of("0123456789") == std::string::npos;
  return RunNow({"scontrol", "update", "JobId=" + RequeueTarget(job),
                 (number ? "NumNodes=" : "NodeList=") + nodes},
                kUpdateBound)
      .status();
}

// Where Slurm keeps accounts, a job that was resized a moment ago is not changed again before they know of it. Without accounts it never is.
bool KeepsAccounts() {
  const auto config = RunNow({"scontrol", "show", "config"}, kSlurmBound);
  return !config.ok() || config->find("accounting_storage/slurmdbd") != std::string::npos;
}

std::string Count(int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

// Where srun has no plugin: what the command has for it, and what it and the environment mean.
struct Unplugged {
  PluginOptions options;
  Settings settings;
};

std::optional<std::string> ValueOf(const PluginOptions& options, const std::string& name) {
  if (const auto it = options.values.find(name); it != options.values.end()) return it->second;
  const char* value = name.starts_with("SLURM_") ? nullptr : std::getenv(name.c_str());  // of an outer step
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

class Supervisor {
 public:
  Supervisor(const SuperviseOptions& options, std::optional<Unplugged> unplugged)
      : options_(options), unplugged_(std::move(unplugged)), judge_(options.max_lives) {}

  Result<int> Run();

 private:
  Status TakeSignals();
  Status OpenReport();
  Result<JobRecord> AwaitJob();
  Status StartHost(std::vector<std::string>* environment);
  Status Spawn(const JobRecord& job);
  int AwaitSrun();
  // Takes signals until srun has ended, when it runs, and at most until `until`; false when it is to end.
  bool TakeSignalsUntil(Clock::time_point until);
  void OnSignal(const signalfd_siginfo& signal);
  bool TellTasksToEnd();  // false: it is to be tried again
  void ReadStory();
  std::string StepName() const;  // of the life of story_, as Slurm's commands want it
  EndedLife LookBack();
  StepVerdict Decide();
  void Resize(const LifeStory& story);
  void SayEnd(const StepVerdict& verdict) const;

  const SuperviseOptions options_;
  const std::optional<Unplugged> unplugged_;
  const std::string id_ = RandomHex(16);
  Judge judge_;
  Socket signals_, report_, report_in_;  // report_in_: the writing end, which hosts open by name
  sigset_t taken_{};
  int life_ = 0;
  std::string dir_;                    // of the checkpoints; "" = not known yet
  std::unique_ptr<HostProcess> host_;  // of this life, where there is no plugin
  StepShape shape_;
  std::string job_target_;  // what names it, and not the array that it is a task of
  std::string nodes_;       // of the job, when this life began
  pid_t srun_ = -1;
  int exit_code_ = 0;
  bool told_to_end_ = false;
  bool tasks_to_tell_ = false;                    // that they are to end
  std::optional<Clock::time_point> interrupted_;  // when srun ran
  std::optional<LifeStory> story_;                // of this life
};

Result<int> Supervisor::Run() {
  CAIRN_RETURN_IF_ERROR(TakeSignals());
  CAIRN_RETURN_IF_ERROR(OpenReport());
  for (;; ++life_) {
    CAIRN_ASSIGN_OR_RETURN(const JobRecord job, AwaitJob());
    CAIRN_ASSIGN_OR_RETURN(shape_, ShapeStep(options_.wish, job));
    CAIRN_RETURN_IF_ERROR(Spawn(job));
    exit_code_ = AwaitSrun();
    host_.reset();
    const StepVerdict verdict = Decide();
    if (life_ > 0 || verdict.kind != StepVerdict::Kind::kDone) SayEnd(verdict);
    if (verdict.kind != StepVerdict::Kind::kRestart) break;
    if (story_ && story_->end == "resize") Resize(*story_);
    if (!TakeSignalsUntil(Clock::now() + verdict.pause)) break;
  }
  return exit_code_;
}

// While Slurm does not answer it is asked again, for five minutes.
Result<JobRecord> Supervisor::AwaitJob() {
  const auto end = Clock::now() + seconds(300);
  for (;;) {
    auto job = ReadJob(options_.job);
    if (job.ok() || Clock::now() > end || !TakeSignalsUntil(Clock::now() + kAskPause)) return job;
  }
}

// ---- srun ----

Status Supervisor::TakeSignals() {
  sigemptyset(&taken_);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&taken_, signal);
  if (sigprocmask(SIG_BLOCK, &taken_, nullptr) != 0) return Status::FromErrno(errno, "block signals");
  signals_ = Socket(signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals_.fd() < 0) return Status::FromErrno(errno, "signalfd");
  return OkStatus();
}

Status Supervisor::OpenReport() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Status::FromErrno(errno, "pipe");
  report_ = Socket(ends[0]);
  report_in_ = Socket(ends[1]);
  return OkStatus();
}

// Without srun's plugin. What the host hands over is added to srun's environment.
Status Supervisor::StartHost(std::vector<std::string>* environment) {
  std::vector<std::string> its;
  for (const auto& [name, value] : unplugged_->options.values)
    its.push_back("CAIRN_PLUGIN_" + name + "=" + value);
  // The user's preload is for the user's programs; and none of the host's own names may come from elsewhere.
  static constexpr std::string_view kNotFromHere[] = {"LD_PRELOAD=", "CAIRN_PLUGIN_", "CAIRN_SITE_",
                                                      "CAIRN_HOST_"};
  std::copy_if(environment->begin(), environment->end(), std::back_inserter(its),
               [](const std::string& variable) {
                 return std::none_of(std::begin(kNotFromHere), std::end(kNotFromHere),
                                     [&](std::string_view name) { return variable.starts_with(name); });
               });
  // The step has no number before srun has made it. The ranks know it (runtime/session/bootstrap.cc).
  its.push_back("CAIRN_HOST_JOB=" + std::to_string(options_.job));
  its.push_back("CAIRN_HOST_STEP=" + std::to_string(life_));
  its.push_back("CAIRN_HOST_RESTART=" + std::to_string(options_.restart));
  its.push_back("CAIRN_HOST_NAME=" + ReadSrunCommand(unplugged_->options.command).step_name);
  auto host = HostProcess::Start(options_.program, std::move(its), kHandOverBound);
  if (!host.ok()) {
    const Status& why = host.status();
    if (why.code() == Code::kInvalid || unplugged_->settings.require) return why;
    if (life_ > 0) return why.Annotate("the next life would be unprotected, and begin from the start");
    Say("NOT PROTECTED: " + why.message());
    return OkStatus();
  }
  host_ = *std::move(host);
  const auto& variables = host_->variables();
  environment->insert(environment->end(), variables.begin(), variables.end());
  environment->push_back("SLURM_CAIRN_LIB=" + options_.libdir + "/libcairn.so");
  environment->push_back("SLURM_TASK_PROLOG=" + options_.libdir + "/cairn/task-prolog");
  return OkStatus();
}

Status Supervisor::Spawn(const JobRecord& job) {
  nodes_ = job.node_list;
  job_target_ = RequeueTarget(job);
  story_.reset();
  std::vector<std::string> environment;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view variable(*e);  // an outer step's SLURM_CAIRN_* say nothing of this one
    if (!variable.starts_with("CAIRN_RUN_") && !variable.starts_with("SLURM_CAIRN_"))
      environment.emplace_back(variable);
  }
  environment = ShapeEnvironment(environment, job);
  environment.push_back("CAIRN_RUN_JOB=" + std::to_string(options_.job));
  environment.push_back("CAIRN_RUN_ID=" + id_);
  environment.push_back("CAIRN_RUN_LIFE=" + std::to_string(life_));
  environment.push_back("CAIRN_RUN_MIN_NODES=" + std::to_string(options_.wish.min_nodes));
  environment.push_back("CAIRN_RUN_REPORT=/proc/" + std::to_string(getpid()) + "/fd/" +
                        std::to_string(report_in_.fd()));
  if (!dir_.empty()) environment.push_back("CAIRN_RUN_DIR=" + dir_);
  if (unplugged_ && unplugged_->settings.enabled) CAIRN_RETURN_IF_ERROR(StartHost(&environment));

  std::vector<std::string> argv =
      ShapeCommand(unplugged_ ? unplugged_->options.command : options_.command, shape_);
  const std::string program = argv[0];
  CAIRN_ASSIGN_OR_RETURN(srun_, cairn::Spawn({.program = program,
                                              .argv = std::move(argv),
                                              .environment = std::move(environment),
                                              .descriptors = {},
                                              .defaults = taken_}));
  return OkStatus();
}

int Supervisor::AwaitSrun() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(srun_, &status, WNOHANG);
    if (pid == srun_) {
      srun_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (tasks_to_tell_) tasks_to_tell_ = !TellTasksToEnd();
    (void)TakeSignalsUntil(tasks_to_tell_ ? Clock::now() + kAskPause : Clock::time_point::max());
  }
}

// ---- signals ----

// Where srun runs, the caller looks after it at each signal.
bool Supervisor::TakeSignalsUntil(Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    const bool endless = until == Clock::time_point::max();
    if (!endless && left <= 0) return !told_to_end_;
    pollfd ready{signals_.fd(), POLLIN, 0};
    const int timeout_ms = endless ? -1 : static_cast<int>(std::min<int64_t>(left, 60000));
    if (poll(&ready, 1, timeout_ms) <= 0) continue;
    signalfd_siginfo signal{};
    while (read(signals_.fd(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal))
      OnSignal(signal);
    if (endless || told_to_end_) return !told_to_end_;
  }
}

void Supervisor::OnSignal(const signalfd_siginfo& signal) {
  const int number = static_cast<int>(signal.ssi_signo);
  switch (number) {
    case SIGTERM:
      told_to_end_ = true;
      tasks_to_tell_ = srun_ > 0;
      return;
    case SIGINT: {
      // A single one does not end a step; where it does (srun --disable-status), the journal says so.
      const auto now = Clock::now();
      if (srun_ < 0 || (interrupted_ && now - *interrupted_ <= kSecondInterrupt)) told_to_end_ = true;
      interrupted_ = now;
      // From a terminal it has reached srun as well.
      if (srun_ > 0 && signal.ssi_code != SI_KERNEL) kill(srun_, SIGINT);
      return;
    }
    case SIGUSR1:
    case SIGUSR2:
      if (srun_ > 0) kill(srun_, number);
      return;
    default:
      return;  // SIGCHLD: of srun, or of a scontrol
  }
}

bool Supervisor::TellTasksToEnd() {
  const auto job = ReadJob(options_.job);
  if (!job.ok()) {
    Say("the step is not told to end yet, since Slurm does not say how the job stands: " +
        job.status().message());
    return false;
  }
  // Slurm that ends the job has told the tasks itself.
  if (job->state != "RUNNING" || job->preempt_time) return true;
  ReadStory();
  if (!story_) {
    kill(srun_, SIGTERM);  // no rank has opened a session: there is nothing to save
    return true;
  }
  const std::string step = StepName();
  const auto told = RunNow({"scancel", "--signal=TERM", step}, kSlurmBound);
  if (!told.ok()) Say("step " + step + " could not be told to end yet: " + told.status().message());
  return told.ok();
}

// ---- what has become of a life ----

// This life's; nothing while no rank has opened a session.
void Supervisor::ReadStory() {
  char text[PIPE_BUF];
  ssize_t n;
  while ((n = read(report_.fd(), text, sizeof text)) > 0) {
    const std::string_view line(text, static_cast<size_t>(n));
    dir_ = line.substr(0, line.find('\n'));
  }
  if (dir_.empty()) return;
  const auto dir = RunDirectory::OpenExisting(dir_);
  const auto lives = dir.ok() ? ReadLives(*dir) : Result<std::vector<LifeStory>>(dir.status());
  if (!lives.ok() && lives.status().code() != Code::kNotFound)
    Say("how the last life ended cannot be read: " + lives.status().message());
  if (!lives.ok()) return;
  for (const LifeStory& told : *lives) {
    if (told.run_life == id_ + "." + std::to_string(life_)) story_ = told;
  }
}

std::string Supervisor::StepName() const { return job_target_ + "." + story_->step_id; }

EndedLife Supervisor::LookBack() {
  ReadStory();
  EndedLife life{
      .exit_code = exit_code_, .told_to_end = told_to_end_, .began_on = nodes_, .job = {}, .story = story_};
  if (auto job = ReadJob(options_.job); job.ok()) life.job = *std::move(job);
  return life;
}

StepVerdict Supervisor::Decide() {
  std::optional<std::string> said;
  for (;;) {
    EndedLife life = LookBack();
    if (life.job && life.job->preempt_time) {
      const int64_t until = life.job->end_time ? *life.job->end_time + kGraceMargin.count()
                                               : *life.job->preempt_time + kGraceUnknown.count();
      if (std::time(nullptr) > until) life.job->preempt_time.reset();
    }
    StepVerdict verdict = judge_.Rule(life);
    if (verdict.kind != StepVerdict::Kind::kAskAgain) return verdict;
    if (said != verdict.why) Say(verdict.why + ": no step is started meanwhile");
    said = verdict.why;
    (void)TakeSignalsUntil(Clock::now() + kAskPause);
  }
}

void Supervisor::Resize(const LifeStory& story) {
  const auto before = ReadJob(options_.job);
  if (!before.ok()) return Say("no resize: " + before.status().message());
  if (std::to_string(before->nodes) == story.nodes || before->node_list == story.nodes) return;
  const auto end = Clock::now() + kUpdateBound;
  Status shrunk = ShrinkTo(*before, story.nodes);
  while (shrunk.message().find("try again") != std::string::npos && Clock::now() < end && KeepsAccounts() &&
         TakeSignalsUntil(Clock::now() + kAskPause))
    shrunk = ShrinkTo(*before, story.nodes);
  if (!shrunk.ok())
    Say("no resize to " + story.nodes + ": " + shrunk.message() +
        "; it goes on with the nodes that the job has");
}

void Supervisor::SayEnd(const StepVerdict& verdict) const {
  std::string line = "life " + std::to_string(life_) + " (";
  if (story_) line += "step " + StepName() + ", ";
  line += Count(shape_.tasks, "task") + " on " + Count(shape_.nodes, "node") + ") ended: " + verdict.why;
  if (story_) {
    const int64_t came_to = CameTo(*story_);
    if (story_->end_step && *story_->end_step >= came_to)
      line += "; it came to step " + std::to_string(*story_->end_step) + ", " +
              Count(*story_->end_step - came_to, "step") + " of which are lost";
    line += came_to > 0 ? "; the newest checkpoint holds step " + std::to_string(came_to)
                        : "; there is no checkpoint";
  }
  if (verdict.kind == StepVerdict::Kind::kRestart) {
    line += "; life " + std::to_string(life_ + 1) + " follows";
    if (verdict.pause.count() > 0) line += " in " + std::to_string(verdict.pause.count()) + " s";
  } else if (verdict.kind == StepVerdict::Kind::kStop && !dir_.empty()) {
    line += "; no other step is started. To resume, run the same command again with --checkpoint-dir=" + dir_;
  }
  Say(line);
}

}  // namespace

Result<int> Supervise(const SuperviseOptions& options) {
  std::optional<Unplugged> unplugged;
  if (!options.plugin) {
    CAIRN_ASSIGN_OR_RETURN(PluginOptions taken, TakePluginOptions(options.command));
    const auto value = [&taken](const std::string& name) { return ValueOf(taken, name); };
    CAIRN_ASSIGN_OR_RETURN(Settings settings, ParseSettings(value));
    unplugged = Unplugged{std::move(taken), std::move(settings)};
  }
  Supervisor supervisor(options, std::move(unplugged));
  return supervisor.Run();
}

}  // namespace cairn
