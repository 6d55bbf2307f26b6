#include "runtime/host/host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/loop.h"
#include "runtime/control/secret.h"
#include "runtime/control/socket.h"
#include "runtime/host/copier.h"
#include "runtime/host/directory.h"
#include "runtime/host/host_protocol.h"
#include "runtime/host/reception.h"
#include "runtime/host/registry.h"
#include "runtime/host/registry_writer.h"
#include "runtime/host/resolve.h"
#include "runtime/host/slurm_service.h"
#include "runtime/mirror/mirror.h"
#include "runtime/slurm/command.h"
#include "runtime/slurm/requeue.h"
#include "runtime/slurm/run_now.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPollInterval{60};  // of the job's record while no session is open
constexpr milliseconds kStepNameBound{5000};
constexpr milliseconds kEndScriptBound{5000};

void Say(const std::string& line) { std::fprintf(stderr, "cairn: %s\n", line.c_str()); }

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

// What the tasks get, and how the host serves them.
struct Plan {
  StepIdentity step;
  ResolvedSettings resolved;
  std::string dir;
  Secret token = Secret::Random();
  std::string key;
  std::vector<Socket> listeners;
  std::string rendezvous;
};

// What `cairn run` says to the hosts of its lives.
struct Supervision {
  std::optional<std::string> life;    // nothing = nobody supervises
  std::string id;                     // its own
  std::optional<std::string> dir;     // of its first life; nothing in that one
  std::optional<std::string> report;  // a pipe to it, by name

  // A rank of a life that submits another job hands these variables on to it: there they mean nothing.
  static Supervision Read() {
    const auto job = Variable("CAIRN_RUN_JOB");
    if (!job || job != Variable("CAIRN_HOST_JOB")) return {};
    Supervision out{Variable("CAIRN_RUN_LIFE"), Variable("CAIRN_RUN_ID").value_or(""),
                    Variable("CAIRN_RUN_DIR"), Variable("CAIRN_RUN_REPORT")};
    return out.life ? out : Supervision{};
  }
  bool later_life() const { return life && life != "0"; }

  void Report(const std::string& directory) const {
    if (!report) return;
    const std::string line = directory + "\n";
    const int fd = open(report->c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat what {};  // where `cairn run` is gone, its number and its descriptor may be another process's
    if (fd < 0 || fstat(fd, &what) != 0 || !S_ISFIFO(what.st_mode) ||
        write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      Say("`cairn run` cannot be told where this life's checkpoints are");
    if (fd >= 0) close(fd);
  }
};

// The end of the pair, or stdin and stdout.
class HandOver {
 public:
  explicit HandOver(int fd)
      : in_(fd < 0 ? STDIN_FILENO : fd), out_(fd < 0 ? STDOUT_FILENO : fd), plain_(fd < 0) {
    if (!plain_) fcntl(fd, F_SETFD, FD_CLOEXEC);  // a child that outlives this process holds up nobody
  }

  bool plain() const { return plain_; }

  void Env(const std::string& name, const std::string& value) {
    text_ += (plain_ ? "" : "env ") + name + "=" + value + "\n";
  }

  // The last word: the step is refused (`fail`), or runs unprotected (`off`).
  int Refuse(const std::string& word, const std::string& why) {
    if (plain_) {
      Say(why);
    } else {
      text_ = word + " " + why + "\n";
      Write();
    }
    return plain_ || word == "fail" ? 1 : 0;
  }

  bool Finish() {
    if (!plain_) text_ += "end\n";
    if (!Write()) return false;
    if (plain_) {
      const int null =
          open("/dev/null", O_WRONLY | O_CLOEXEC);  // so that a reader of the lines sees their end
      if (null >= 0) dup2(null, STDOUT_FILENO);
      close(null);
    }
    return true;
  }

  // Blocks until the other side has ended.
  void AwaitEnd() const {
    char buffer[256];
    for (;;) {
      const ssize_t n = read(in_, buffer, sizeof(buffer));
      if (n == 0 || (n < 0 && errno != EINTR)) return;
    }
  }

 private:
  bool Write() {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const ssize_t n = write(out_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      rest.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  const int in_, out_;
  const bool plain_;
  std::string text_;
};

// The step's name is known to Slurm alone: srun has not put it into its environment yet.
Result<std::string> AskStepName(Loop* loop, const StepIdentity& step) {
  std::unique_ptr<CommandRunner> runner;
  std::promise<Result<std::string>> answer;
  loop->Post([&] {
    runner = std::make_unique<CommandRunner>(loop);
    runner->Run(
        {"scontrol", "show", "step", "-o", std::to_string(step.job) + "." + std::to_string(step.step)},
        kStepNameBound, [&](Result<std::string> text) { answer.set_value(std::move(text)); });
  });
  Result<std::string> text = answer.get_future().get();
  loop->Run([&] { runner.reset(); });
  if (!text.ok()) return text.status();
  std::string name = StepName(*text);
  if (name.empty()) return Status(Code::kUnavailable, "scontrol does not tell the step's name");
  return name;
}

Result<std::string> ChooseDirectory(Loop* loop, const Plan& plan, const Supervision& supervision) {
  if (supervision.dir) return *supervision.dir;
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  const std::string& wanted = plan.resolved.settings.dir;
  if (!wanted.empty()) return ExpandDirectory("--checkpoint-dir", wanted, plan.step, here);
  if (plan.step.job == 0) return here + "/cairn";
  const auto told = Variable("CAIRN_HOST_NAME");
  const Result<std::string> name = told ? *told : AskStepName(loop, plan.step);
  const std::string advice = "; give --checkpoint-dir";
  if (!name.ok())
    return Status(Code::kUnavailable,
                  "the default directory needs the step's name: " + name.status().message() + advice);
  auto dir = ClaimDefaultDirectory(Variable("SLURM_SUBMIT_DIR").value_or(here), plan.step, *name);
  if (!dir.ok()) return Status(Code::kUnavailable, dir.status().message() + advice);
  return dir;
}

// Of --checkpoint-copy. kInvalid: it is refused.
Status ChooseCopy(Plan* plan) {
  CopyRule& copy = plan->resolved.settings.copy;
  if (copy.to.empty()) return OkStatus();
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  std::string& text = plan->resolved.text[kSetting_copy];
  const std::string rest = text.substr(copy.to.size());
  CAIRN_ASSIGN_OR_RETURN(copy.to, ExpandDirectory("--checkpoint-copy", copy.to, plan->step, here));
  text = copy.to + rest;
  return MayMirror(plan->dir, copy.to).Annotate("--checkpoint-copy");
}

// By the name that people know; its link in /proc names the process "exe".
std::string ThisProgram() {
  constexpr const char* kLink = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kLink, error);
  return !error && std::filesystem::exists(program, error) ? program.string() : kLink;
}

// What `cairn push` is to know: the step's settings, and who it copies for.
std::vector<std::string> EnvironmentOfPush(const Plan& plan) {
  std::vector<std::string> out = CommandEnvironment();
  const auto set = [&out](const std::string& name, const std::string& value) {
    std::erase_if(out, [&](const std::string& entry) { return entry.starts_with(name + "="); });
    if (!value.empty()) out.push_back(name + "=" + value);
  };
  for (int i = 0; i < kSettingCount; ++i) {
    const std::string name(GetSettingInfo(static_cast<SettingId>(i)).env);
    set(name, plan.resolved.text[static_cast<size_t>(i)]);
    set("SLURM_" + name, "");
  }
  if (plan.step.job == 0) return out;
  set("SLURM_JOB_ID", std::to_string(plan.step.job));
  set("SLURM_STEP_ID", std::to_string(plan.step.step));
  set("SLURM_RESTART_COUNT", std::to_string(plan.step.restart));
  return out;
}

// "" = all addresses.
Status ListenFor(Plan* plan, std::string host) {
  const ResolvedSettings& site = plan->resolved;
  std::vector<std::string> addresses;
  if (host.empty() && !site.interface.empty()) {
    addresses = ReachableAddresses(0, site.interface);
    if (addresses.empty())
      return Status(Code::kUnavailable, "interface " + site.interface + " has no address here");
    host = addresses.front().substr(0, addresses.front().rfind(':'));
  }
  CAIRN_ASSIGN_OR_RETURN(Socket socket, ListenTcp(host, site.first_port, site.last_port));
  const uint16_t port = LocalPort(socket);
  addresses = host.empty() ? ReachableAddresses(port, "")
                           : std::vector<std::string>{host + ":" + std::to_string(port)};
  for (const std::string& a : addresses) plan->rendezvous += (plan->rendezvous.empty() ? "" : ",") + a;
  plan->listeners.push_back(std::move(socket));
  return OkStatus();
}

// Serves until it is destroyed. Loop thread only.
class Server {
 public:
  Server(Loop* loop, Plan plan, bool supervised)
      : step_(plan.step),
        supervised_(supervised),
        dir_(plan.dir),
        open_within_(plan.resolved.settings.open_within),
        registry_(RegistryPath(), plan.step, plan.dir),
        slurm_(loop, plan.step, !supervised),
        unopened_(loop, [this] { StillUnopened(); }),
        poll_(loop, [this] { Poll(); }),
        reception_(loop, std::move(plan.listeners),
                   {Role::kHost, Role::kMember, plan.key, "", 0, 0, plan.token},
                   {[this](const std::string& session) { Opened(session); },
                    [this](const std::string& session, uint16_t type, std::string payload) {
                      Serve(session, type, payload);
                    },
                    [](const std::string& line) { Say(line); }}) {
    registry_.Append("start", 0);
    if (const CopyRule& copy = plan.resolved.settings.copy; !copy.to.empty())
      copier_.emplace(loop, CopierOptions{.program = ThisProgram(),
                                          .environment = EnvironmentOfPush(plan),
                                          .dir = dir_,
                                          .copy = copy,
                                          .keep = plan.resolved.text[kSetting_copy_keep],
                                          .say = Say,
                                          .tell = [this](const CopyState& state) { TellCopies(state); }});
    unopened_.Once(std::chrono::duration_cast<milliseconds>(open_within_));
    if (step_.job != 0) poll_.Every(kPollInterval);
  }

  // The step has ended.
  void Bury() {
    if (!at_work_.empty() && !supervised_)
      Say("the ranks ended without cairn_finalize, so the run is not finished. To resume, run the same "
          "command again with "
          "--checkpoint-dir=" +
          dir_);
    if (copier_ && !copier_->LastWord().empty()) Say(copier_->LastWord());
  }

  const std::string& stopped_script() const { return slurm_.stopped_script(); }

 private:
  void Opened(const std::string& session) {
    unopened_.Stop();
    poll_.Stop();
    opened_ = true;
    at_work_.insert(session);
  }

  void StillUnopened() {
    NotProtected("no rank has opened a session within " + FormatDuration(open_within_));
  }

  void NotProtected(const std::string& why) {
    Say("NOT PROTECTED: " + why +
        ", so nothing of this step is saved. Let the program open a session (cairn_open; see cairn(7)), or "
        "run it "
        "without --checkpoint");
  }

  // While nobody has opened a session nobody asks for the cause, so that a preemption would pass in silence.
  void Poll() {
    slurm_.AskCause({}, [this](const CauseReply& reply) {
      if (opened_ || (reply.cause != Cause::kPreempted && reply.cause != Cause::kRequeued)) return;
      poll_.Stop();
      NotProtected(reply.why + " and no rank has opened a session");
    });
  }

  void Serve(const std::string& session, uint16_t type, const std::string& payload) {
    switch (type) {
      case kHostCauseQuery:
        return AnswerCause(session, payload);
      case kHostHolderQuery:
        return Answer<HolderQuery, HolderReply>(session, payload, &SlurmService::AskHolder);
      case kHostRequeueQuery:
        return Answer<RequeueQuery, RequeueReply>(session, payload, &SlurmService::AskRequeue);
      case kHostSaved:
        if (const auto saved = DecodeHostMessage<Saved>(payload); saved.ok()) OnSaved(session, saved->step);
        return;
      case kHostLeft:
        at_work_.erase(session);
        return;
      default:
        return;  // of a later version
    }
  }

  void OnSaved(const std::string& session, int64_t step) {
    if (!std::exchange(knows_save_, true)) registry_.Append("saved", step);
    copying_for_ = session;
    if (copier_) copier_->Due(step);
  }

  void TellCopies(const CopyState& state) {
    reception_.SendToLeader(copying_for_, CopyState::kType, EncodeHostMessage(state));
  }

  // What is left of a job that is being ended belongs to its last save.
  void AnswerCause(const std::string& session, const std::string& payload) {
    Answer<CauseQuery, CauseReply>(session, payload, &SlurmService::AskCause,
                                   [this](const CauseReply& reply) {
                                     if (copier_ && reply.cause != Cause::kUnknown) copier_->Stop();
                                   });
  }

  template <typename Query, typename Reply>
  void Answer(const std::string& session, const std::string& payload,
              void (SlurmService::*ask)(const Query&, std::function<void(Reply)>),
              const std::function<void(const Reply&)>& look = {}) {
    const auto query = DecodeHostMessage<Query>(payload);
    if (!query.ok()) return Say(query.status().message());
    (slurm_.*ask)(*query, [this, session, look](const Reply& reply) {
      if (look) look(reply);
      reception_.SendToLeader(session, Reply::kType, EncodeHostMessage(reply));
    });
  }

  const StepIdentity step_;
  const bool supervised_;  // `cairn run` says what becomes of a step that has ended
  const std::string dir_;
  const Nanoseconds open_within_;
  bool opened_ = false;
  std::set<std::string> at_work_;  // sessions that have opened and not said goodbye
  RegistryWriter registry_;
  SlurmService slurm_;
  Timer unopened_, poll_;
  Reception reception_;
  bool knows_save_ = false;  // the registry does
  std::string copying_for_;  // the session whose checkpoints are copied
  std::optional<Copier> copier_;
};

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int HostMain(const HostOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  // In a batch job Slurm's SIGTERM reaches this process too, in the middle of the requeue that caused it. It ends with srun, by EOF.
  signal(SIGTERM, SIG_IGN);
  RaiseDescriptorLimit();
  HandOver hand_over(options.fd);

  Plan plan;
  plan.step = ResolveStep(Variable);
  auto resolved = ResolveSettings(Variable);
  if (!resolved.ok()) return hand_over.Refuse("fail", resolved.status().message());
  plan.resolved = *std::move(resolved);
  if (!plan.resolved.settings.enabled) {
    if (!hand_over.plain()) return hand_over.Refuse("off", "checkpointing is off");
    plan.resolved.text[kSetting_checkpoint] = "on";  // whoever starts this by hand wants it
  }
  for (const std::string& note : plan.resolved.notes) Say(note);
  const std::string unable = plan.resolved.settings.require ? "fail" : "off";

  auto loop = Loop::Start("cairn-host");
  if (!loop.ok()) return hand_over.Refuse(unable, loop.status().message());
  const Supervision supervision = Supervision::Read();
  auto dir = ChooseDirectory(loop->get(), plan, supervision);
  if (!dir.ok())
    return hand_over.Refuse(dir.status().code() == Code::kInvalid ? "fail" : unable, dir.status().message());
  plan.dir = *dir;
  if (!DirectoryAllowed(plan.dir, plan.resolved.allowed_dirs)) {
    return hand_over.Refuse("fail", "--checkpoint-dir=" + plan.dir +
                                        " is refused: this site keeps checkpoints only below " +
                                        plan.resolved.allowed_dirs);
  }
  if (const Status status = ChooseCopy(&plan); !status.ok())
    return hand_over.Refuse("fail", status.message());
  if (const Status status = ListenFor(&plan, options.listen); !status.ok()) {
    return hand_over.Refuse(unable, "the host process cannot listen: " + status.message());
  }
  plan.key = std::to_string(plan.step.job) + "." + std::to_string(plan.step.step) + "." +
             std::to_string(plan.step.restart);

  for (int i = 0; i < kSettingCount; ++i) {
    if (i == kSetting_dir) continue;
    hand_over.Env("SLURM_" + std::string(GetSettingInfo(static_cast<SettingId>(i)).env),
                  plan.resolved.text[static_cast<size_t>(i)]);
  }
  hand_over.Env("SLURM_CAIRN_DIR", plan.dir);
  hand_over.Env("SLURM_CAIRN_KEY", plan.key);
  hand_over.Env("SLURM_CAIRN_RENDEZVOUS", plan.rendezvous);
  hand_over.Env("SLURM_CAIRN_TOKEN", plan.token.Hex());
  if ((plan.step.restart > 0 || supervision.later_life()) &&
      RegistryKnowsSave(RegistryPath(), plan.step.job, plan.dir))
    hand_over.Env("SLURM_CAIRN_SAVED", "1");
  hand_over.Env("SLURM_CAIRN_HOST_PID", std::to_string(getpid()));
  if (supervision.life) {
    hand_over.Env("SLURM_CAIRN_LIFE", supervision.id + "." + *supervision.life);
    hand_over.Env("SLURM_CAIRN_MIN_NODES", Variable("CAIRN_RUN_MIN_NODES").value_or("1"));
    supervision.Report(plan.dir);
  }

  std::unique_ptr<Server> server;
  (*loop)->Run(
      [&] { server = std::make_unique<Server>(loop->get(), std::move(plan), supervision.life.has_value()); });
  if (hand_over.Finish()) hand_over.AwaitEnd();
  std::string script;
  (*loop)->Run([&] {
    server->Bury();
    script = server->stopped_script();
    server.reset();
  });
  if (script.empty()) return 0;
  if (const auto ended = RunNow(EndScript(script), kEndScriptBound); !ended.ok())
    Say("the script of job " + script + " could not be ended (" + ended.status().message() +
        "): Slurm does it, and requeues the job, when the grace time is over");
  return 0;
}

}  // namespace cairn
