// Real programs under the shim. This test plays slurmstepd: SLURM_CAIRN_STEPD is its own pid, so that what it sends comes "from Slurm", and
// what a forked helper sends comes from a stranger.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono_literals::operator""ms;

const char kToken[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

// How long a condition is waited for before the test gives up.
constexpr int kPatienceMs = 10000;

// A child process in a group of its own, with its stdin and stdout on pipes.
class Program {
 public:
  Program(std::vector<std::string> arguments, std::vector<std::string> environment) {
    int to_child[2], from_child[2];
    EXPECT_EQ(pipe2(to_child, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_child, O_CLOEXEC), 0);
    environment.push_back(std::string("PATH=") + getenv("PATH"));
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (std::string& variable : environment) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, to_child[0], 0);
    posix_spawn_file_actions_adddup2(&files, from_child[1], 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    EXPECT_EQ(posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), envp.data()), 0) << argv[0];
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(to_child[0]);
    close(from_child[1]);
    in_ = to_child[1];
    out_ = from_child[0];
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ~Program() {
    if (pid_ > 0) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    CloseInput();
    close(out_);
  }

  pid_t pid() const { return pid_; }

  void CloseInput() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }

  // "" at the end of the output, and when nothing comes.
  std::string ReadLine() {
    std::string line;
    char byte;
    pollfd ready{out_, POLLIN, 0};
    while (poll(&ready, 1, kPatienceMs) == 1 && read(out_, &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }

  std::string Ask(std::string command) {
    command += '\n';
    EXPECT_EQ(write(in_, command.data(), command.size()), static_cast<ssize_t>(command.size()));
    return ReadLine();
  }

  // From "Slurm". A puppet has taken the signal when it answers the next question.
  void Term() const { EXPECT_EQ(kill(pid_, SIGTERM), 0); }
  void TermToAll() const { EXPECT_EQ(kill(-pid_, SIGTERM), 0); }

  // Waits for the end. "exit N", "signal N", or "runs on".
  std::string End() {
    int status = 0;
    for (int waited_ms = 0; waitpid(pid_, &status, WNOHANG) == 0; ++waited_ms) {
      if (waited_ms == kPatienceMs) return "runs on";
      std::this_thread::sleep_for(1ms);
    }
    pid_ = 0;
    return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                               : "exit " + std::to_string(WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
};

// Sends a signal from a process that is not Slurm; returns its pid.
pid_t SendFromStranger(pid_t target, int signo) {
  const pid_t stranger = fork();
  if (stranger == 0) _exit(kill(target, signo) == 0 ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0);
  return stranger;
}

// The line of /proc/<pid>/status that begins so.
std::string StatusLine(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return line;
  }
  return "";
}

// Whether the signal is in the set of that line.
bool InSet(pid_t pid, const std::string& name, int signo) {
  const std::string line = StatusLine(pid, name);
  return line.size() > name.size() + 2 &&
         (std::stoull(line.substr(name.size() + 2), nullptr, 16) >> (signo - 1) & 1) != 0;
}

bool Ignores(const Program& program) { return InSet(program.pid(), "SigIgn", SIGTERM); }
bool Catches(const Program& program) { return InSet(program.pid(), "SigCgt", SIGTERM); }

// Waits until the program has no SIGTERM to take and sleeps.
void AwaitSleep(const Program& program) {
  while (InSet(program.pid(), "ShdPnd", SIGTERM) ||
         StatusLine(program.pid(), "State").find("\tS") == std::string::npos) {
    std::this_thread::yield();
  }
}

class Shim : public testing::Test {
 protected:
  ~Shim() override { unlink(shield_file_.c_str()); }

  std::vector<std::string> TokenEnvironment() const {
    return {"LD_PRELOAD=" CAIRN_TEST_SHIM, std::string("SLURM_CAIRN_TOKEN=") + kToken,
            "SLURM_CAIRN_KEY=" + job_ + ".3.0", "SLURM_CAIRN_NODE=n1",
            "SLURM_CAIRN_STEPD=" + std::to_string(getpid())};
  }

  std::unique_ptr<Program> Start(std::vector<std::string> arguments, const std::string& variable = "") {
    std::vector<std::string> environment = TokenEnvironment();
    if (!variable.empty()) environment.push_back(variable);
    return std::make_unique<Program>(std::move(arguments), environment);
  }

  // A puppet that is past its constructors.
  std::unique_ptr<Program> Puppet(const std::string& variable = "") {
    auto puppet = Start({CAIRN_TEST_PUPPET}, variable);
    EXPECT_EQ(puppet->Ask("ping"), "pong");
    return puppet;
  }

  std::unique_ptr<Program> Member(int extra_signal = 0) {
    auto member = Puppet();
    EXPECT_EQ(member->Ask("member " + std::to_string(extra_signal)), "0");
    return member;
  }

  std::vector<int32_t> Shielded() const {
    std::ifstream file(shield_file_, std::ios::binary);
    std::vector<int32_t> pids;
    for (int32_t pid; file.read(reinterpret_cast<char*>(&pid), sizeof pid);) pids.push_back(pid);
    return pids;
  }

  // Waits until so many processes are shielded.
  void AwaitShielded(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (Shielded().size() < count && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_EQ(Shielded().size(), count);
  }

  const std::string job_ = "shim" + std::to_string(getpid());
  const std::string shield_file_ =
      "/dev/shm/cairn-" + std::to_string(geteuid()) + "/" + job_ + ".n1.shield.3";
};

// ---- outside the token ----

TEST_F(Shim, IsInertWithoutTheToken) {
  Program with({CAIRN_TEST_PUPPET}, {"LD_PRELOAD=" CAIRN_TEST_SHIM});
  Program without({CAIRN_TEST_PUPPET}, {});
  EXPECT_EQ(with.Ask("active"), "no");
  EXPECT_EQ(without.Ask("ping"), "pong");
  for (const char* line : {"SigCgt", "SigIgn", "SigBlk", "Threads"}) {
    EXPECT_EQ(StatusLine(with.pid(), line), StatusLine(without.pid(), line));
  }
  EXPECT_EQ(with.Ask("install 15 signal"), "ok");
  EXPECT_EQ(without.Ask("install 15 signal"), "ok");
  EXPECT_EQ(with.Ask("action 15"), without.Ask("action 15"));
}

// ---- a process that is no member ----

TEST_F(Shim, LeavesSlurmsTermItsEffectWhenNoMemberIsAtWork) {
  auto puppet = Puppet();
  puppet->Term();
  EXPECT_EQ(puppet->End(), "signal 15");
}

TEST_F(Shim, HoldsBackSlurmsTermWhileAMemberIsAtWorkOnly) {
  auto member = Member();
  auto other = Puppet();
  other->Term();
  EXPECT_EQ(other->Ask("ping"), "pong");
  EXPECT_THAT(Shielded(), testing::ElementsAre(other->pid()));
  EXPECT_EQ(member->Ask("release"), "ok");
  other->Term();
  EXPECT_EQ(other->End(), "signal 15");
}

TEST_F(Shim, HoldsNothingBackAfterTheMemberWasKilled) {
  auto member = Member();
  auto other = Puppet();
  kill(member->pid(), SIGKILL);
  EXPECT_EQ(member->End(), "signal 9");
  other->Term();
  EXPECT_EQ(other->End(), "signal 15");
}

TEST_F(Shim, HoldsBackUntilTheLastOfSeveralMembersLeaves) {
  auto first = Member();
  auto second = Member();
  auto other = Puppet();
  EXPECT_EQ(first->Ask("leave"), "ok");
  other->Term();
  EXPECT_EQ(other->Ask("ping"), "pong");
  EXPECT_EQ(second->Ask("leave"), "ok");
  other->Term();
  EXPECT_EQ(other->End(), "signal 15");
}

TEST_F(Shim, NeverHoldsBackAStrangersTerm) {
  auto member = Member();
  auto other = Puppet();
  SendFromStranger(other->pid(), SIGTERM);
  EXPECT_EQ(other->End(), "signal 15");
}

TEST_F(Shim, NeverHoldsBackATermThatAProcessSendsItself) {
  auto member = Member();
  auto other = Puppet();
  EXPECT_EQ(other->Ask("raise 15"), "");
  EXPECT_EQ(other->End(), "signal 15");
}

TEST_F(Shim, RunsTheProgramsHandlerForAStrangersTermAndHoldsBackSlurms) {
  auto member = Member();
  auto other = Puppet();
  EXPECT_EQ(other->Ask("install 15 info"), "ok");
  other->Term();
  EXPECT_EQ(other->Ask("informed"), "0 by 0");
  const pid_t stranger = SendFromStranger(other->pid(), SIGTERM);
  EXPECT_EQ(other->Ask("informed"), "1 by " + std::to_string(stranger));
}

TEST_F(Shim, KeepsAnIgnoredSignalIgnoredInTheKernel) {
  auto puppet = Puppet();
  EXPECT_EQ(puppet->Ask("install 15 ignore"), "ok");
  EXPECT_TRUE(Ignores(*puppet));
  EXPECT_EQ(puppet->Ask("install 15 default"), "ok");
  EXPECT_TRUE(Catches(*puppet));
  puppet->Term();
  EXPECT_EQ(puppet->End(), "signal 15");
}

TEST_F(Shim, LeavesASignalAloneThatWasIgnoredAtTheStart) {
  auto puppet = Start({"sh", "-c", "trap '' TERM; exec " CAIRN_TEST_PUPPET});
  EXPECT_THAT(puppet->Ask("action 15"), testing::StartsWith("ignore "));
  puppet->Term();
  EXPECT_EQ(puppet->Ask("ping"), "pong");
}

TEST_F(Shim, DoesNotMindTheContinueSignalAroundTerm) {
  auto member = Member();
  auto other = Puppet();
  EXPECT_EQ(other->Ask("install 18 plain"), "ok");
  for (int signo : {SIGCONT, SIGTERM, SIGCONT}) kill(other->pid(), signo);
  EXPECT_NE(other->Ask("handled"), "0");
  EXPECT_EQ(Shielded().size(), 1u);
}

// ---- the program's view ----

TEST_F(Shim, ReadsBackWhatTheProgramSet) {
  Program plain({CAIRN_TEST_PUPPET}, {});
  auto shimmed = Puppet();
  for (const char* how : {"plain", "masked", "once", "interrupting", "info", "signal", "sysv", "sigset",
                          "ignore", "default", "signal", "siginterrupt", "signal"}) {
    const std::string install = std::string("install 15 ") + how;
    EXPECT_EQ(plain.Ask("action 15"), shimmed->Ask("action 15"));
    EXPECT_EQ(plain.Ask(install), shimmed->Ask(install));
    EXPECT_EQ(plain.Ask("action 15"), shimmed->Ask("action 15")) << how;
  }
}

TEST_F(Shim, KeepsMaskAndInterruptionOfTheProgramsHandler) {
  auto puppet = Puppet();
  puppet->Ask("install 15 masked");
  puppet->Term();
  EXPECT_EQ(puppet->Ask("masked"), "1");
  EXPECT_EQ(puppet->Ask("interrupted"), "0");
  puppet->Ask("install 15 interrupting");
  // The signal must come while it sleeps in read(), and be taken before the next command can end that read().
  AwaitSleep(*puppet);
  puppet->Term();
  AwaitSleep(*puppet);
  EXPECT_EQ(puppet->Ask("handled"), "2");
  EXPECT_EQ(puppet->Ask("interrupted"), "1");
}

TEST_F(Shim, KeepsErrno) {
  auto puppet = Puppet();
  puppet->Ask("install 15 plain");
  EXPECT_EQ(puppet->Ask("block 15"), "ok");
  puppet->Term();  // acts at the unblocking, after a look for a shield file that is not there
  EXPECT_EQ(puppet->Ask("unblock 15"), "errno 4711");
  EXPECT_EQ(puppet->Ask("handled"), "1");
}

TEST_F(Shim, ResetsAHandlerThatWasSetForOneSignal) {
  auto puppet = Puppet();
  puppet->Ask("install 15 once");
  puppet->Term();
  EXPECT_EQ(puppet->Ask("handled"), "1");
  EXPECT_THAT(puppet->Ask("action 15"), testing::StartsWith("default "));
  puppet->Term();
  EXPECT_EQ(puppet->End(), "signal 15");
}

TEST_F(Shim, KeepsTheParentsViewWhenAChildOfVforkSetsItsOwn) {
  auto puppet = Puppet();
  puppet->Ask("install 15 plain");
  EXPECT_EQ(puppet->Ask("vfork"), "0");
  EXPECT_THAT(puppet->Ask("action 15"), testing::StartsWith("plain "));
  puppet->Term();
  EXPECT_EQ(puppet->Ask("handled"), "1");
}

TEST_F(Shim, StandsSignalsWhileThreadsChangeTheHandler) {
  auto member = Member();
  auto puppet = Puppet();
  EXPECT_EQ(puppet->Ask("install 15 plain"), "ok");
  EXPECT_EQ(puppet->Ask("threads"), "ok");
  for (int i = 0; i < 100; ++i) {
    puppet->Term();
    SendFromStranger(puppet->pid(), SIGTERM);
    ASSERT_EQ(puppet->Ask("ping"), "pong");
  }
  EXPECT_NE(puppet->Ask("handled") + puppet->Ask("informed"), "00 by 0");
}

// ---- a member ----

TEST_F(Shim, WakesTheMemberInsteadOfActing) {
  auto member = Member();
  EXPECT_EQ(member->Ask("take"), "none");
  member->Term();
  EXPECT_EQ(member->Ask("events"), "1");
  EXPECT_EQ(member->Ask("take"), "signal 15 slurm 1 pid " + std::to_string(getpid()));
  const pid_t stranger = SendFromStranger(member->pid(), SIGTERM);
  EXPECT_EQ(member->Ask("events"), "1");
  EXPECT_EQ(member->Ask("take"), "signal 15 slurm 0 pid " + std::to_string(stranger));
}

TEST_F(Shim, TakesTheExtraSignalOfAMemberOnly) {
  auto member = Member(SIGUSR1);
  EXPECT_EQ(kill(member->pid(), SIGUSR1), 0);
  EXPECT_EQ(member->Ask("events"), "1");
  EXPECT_EQ(member->Ask("take"), "signal 10 slurm 1 pid " + std::to_string(getpid()));
  auto other = Puppet();
  kill(other->pid(), SIGUSR1);
  EXPECT_EQ(other->End(), "signal 10");
  EXPECT_EQ(member->Ask("leave"), "ok");
  kill(member->pid(), SIGUSR1);
  EXPECT_EQ(member->End(), "signal 10");
}

TEST_F(Shim, TellsAMemberOfAnInterruptAndActsAtDeliver) {
  auto member = Member();
  const pid_t stranger = SendFromStranger(member->pid(), SIGINT);
  EXPECT_EQ(member->Ask("take"), "signal 2 slurm 0 pid " + std::to_string(stranger));
  EXPECT_EQ(member->Ask("install 2 plain"), "ok");
  SendFromStranger(member->pid(), SIGINT);
  EXPECT_EQ(member->Ask("handled"), "0");
  EXPECT_EQ(member->Ask("deliver 2"), "0");
  EXPECT_EQ(member->Ask("handled"), "1");
  EXPECT_EQ(member->Ask("install 2 default"), "ok");
  EXPECT_EQ(member->Ask("deliver 2"), "");
  EXPECT_EQ(member->End(), "signal 2");
}

TEST_F(Shim, LeavesAnInterruptAloneThatAMemberIgnores) {
  auto member = Member();
  EXPECT_EQ(member->Ask("install 2 ignore"), "ok");
  EXPECT_TRUE(InSet(member->pid(), "SigIgn", SIGINT));
  SendFromStranger(member->pid(), SIGINT);
  EXPECT_EQ(member->Ask("take"), "none");
}

TEST_F(Shim, RemembersNoDeliveryThatTheKernelIgnored) {
  auto member = Member();
  EXPECT_EQ(member->Ask("install 2 ignore"), "ok");
  EXPECT_EQ(member->Ask("deliver 2"), "0");
  EXPECT_EQ(member->Ask("install 2 plain"), "ok");
  const pid_t stranger = SendFromStranger(member->pid(), SIGINT);
  EXPECT_EQ(member->Ask("take"), "signal 2 slurm 0 pid " + std::to_string(stranger));
  EXPECT_EQ(member->Ask("handled"), "0");
}

TEST_F(Shim, LeavesADeliveryToTheParentOfAVforkedChildThatGetsASignal) {
  auto member = Member();
  EXPECT_EQ(member->Ask("install 15 plain"), "ok");
  EXPECT_EQ(member->Ask("block 15"), "ok");
  EXPECT_EQ(member->Ask("deliver 15"), "0");
  EXPECT_EQ(member->Ask("vfork 15"), "0");
  EXPECT_EQ(member->Ask("handled"), "1");  // the child's; it shares the counter
  EXPECT_EQ(member->Ask("unblock 15"), "errno 4711");
  EXPECT_EQ(member->Ask("handled"), "2");
}

TEST_F(Shim, LeavesInterruptsToAProcessThatIsNoMember) {
  auto other = Puppet();
  EXPECT_FALSE(InSet(other->pid(), "SigCgt", SIGINT));
  SendFromStranger(other->pid(), SIGINT);
  EXPECT_EQ(other->End(), "signal 2");
}

TEST_F(Shim, RefusesASecondMembershipAndSignalsThatCannotBeCaught) {
  auto puppet = Puppet();
  EXPECT_EQ(puppet->Ask("member 9"), "-1");
  EXPECT_EQ(puppet->Ask("member 15"), "-1");
  EXPECT_EQ(puppet->Ask("member 4711"), "-1");
  EXPECT_EQ(puppet->Ask("member 0"), "0");
  EXPECT_EQ(puppet->Ask("member 0"), "-1");
}

TEST_F(Shim, IsAMemberWithoutAShieldWhereTheFileCannotBeMade) {
  std::vector<std::string> environment = TokenEnvironment();
  environment[3] = "SLURM_CAIRN_NODE=a/b";
  Program odd({CAIRN_TEST_PUPPET}, environment);
  EXPECT_EQ(odd.Ask("member 0"), "1");
  odd.Term();
  EXPECT_EQ(odd.Ask("events"), "1");
}

TEST_F(Shim, TellsAMemberOfEachWatchedSignalWhicheverCameLast) {
  auto member = Member(SIGUSR1);
  member->Term();
  EXPECT_EQ(member->Ask("ping"), "pong");
  const pid_t stranger = SendFromStranger(member->pid(), SIGUSR1);
  EXPECT_EQ(member->Ask("events"), "2");
  EXPECT_EQ(member->Ask("take"), "signal 15 slurm 1 pid " + std::to_string(getpid()));
  EXPECT_EQ(member->Ask("take"), "signal 10 slurm 0 pid " + std::to_string(stranger));
  EXPECT_EQ(member->Ask("take"), "none");
}

class ShimHandler : public Shim, public testing::WithParamInterface<bool> {};

TEST_P(ShimHandler, RunsAtDeliverAndNotBefore) {
  auto puppet = Puppet();
  const bool before = GetParam();
  if (before) puppet->Ask("install 15 plain");
  EXPECT_EQ(puppet->Ask("member 0"), "0");
  if (!before) puppet->Ask("install 15 plain");
  EXPECT_THAT(puppet->Ask("action 15"), testing::StartsWith("plain "));
  puppet->Term();
  EXPECT_EQ(puppet->Ask("handled"), "0");
  EXPECT_EQ(puppet->Ask("deliver 15"), "0");
  EXPECT_EQ(puppet->Ask("handled"), "1");
  EXPECT_EQ(puppet->Ask("events"), "1");
  EXPECT_EQ(puppet->Ask("leave"), "ok");
  puppet->Term();
  EXPECT_EQ(puppet->Ask("handled"), "2");
}

INSTANTIATE_TEST_SUITE_P(Installed, ShimHandler, testing::Bool(),
                         [](const auto& test) { return test.param ? "BeforeOpening" : "AfterOpening"; });

TEST_F(Shim, ServesAProgramThatWasStartedWithoutIt) {
  std::vector<std::string> environment = TokenEnvironment();
  environment[0] = "PUPPET_SHIM=" CAIRN_TEST_SHIM;
  Program puppet({CAIRN_TEST_PUPPET}, environment);
  EXPECT_EQ(puppet.Ask("install 15 plain"), "ok");
  EXPECT_EQ(puppet.Ask("member 0"), "0");
  puppet.Term();
  EXPECT_EQ(puppet.Ask("events"), "1");
  EXPECT_EQ(puppet.Ask("handled"), "0");
  EXPECT_EQ(puppet.Ask("deliver 15"), "0");
  EXPECT_EQ(puppet.Ask("handled"), "1");
}

TEST_F(Shim, EndsWithTheSignalsStatusWhenTheDefaultIsDelivered) {
  auto member = Member();
  member->Term();
  EXPECT_EQ(member->Ask("events"), "1");
  EXPECT_EQ(member->Ask("deliver 15"), "");
  EXPECT_EQ(member->End(), "signal 15");
}

// As `timeout` does when it is passed a SIGTERM: the kernel keeps one pending signal of a number.
TEST_F(Shim, DeliversThoughAStrangersSignalIsPending) {
  auto member = Member();
  EXPECT_EQ(member->Ask("block 15"), "ok");
  SendFromStranger(member->pid(), SIGTERM);
  EXPECT_EQ(member->Ask("deliver 15"), "0");
  EXPECT_EQ(member->Ask("unblock 15"), "");
  EXPECT_EQ(member->End(), "signal 15");
}

TEST_F(Shim, DeliversOnceWhoeverElseSendsTheSignal) {
  auto member = Member();
  EXPECT_EQ(member->Ask("install 15 plain"), "ok");
  EXPECT_EQ(member->Ask("block 15"), "ok");
  SendFromStranger(member->pid(), SIGTERM);
  EXPECT_EQ(member->Ask("deliver 15"), "0");
  EXPECT_EQ(member->Ask("unblock 15"), "errno 4711");
  EXPECT_EQ(member->Ask("handled"), "1");
  const pid_t stranger = SendFromStranger(member->pid(), SIGTERM);
  EXPECT_EQ(member->Ask("handled"), "1");
  EXPECT_EQ(member->Ask("take"), "signal 15 slurm 0 pid " + std::to_string(stranger));
}

TEST_F(Shim, DeliversNothingToAMemberThatIgnoresTheSignal) {
  auto member = Member();
  member->Ask("install 15 ignore");
  EXPECT_TRUE(Catches(*member));
  member->Term();
  EXPECT_EQ(member->Ask("events"), "1");
  EXPECT_EQ(member->Ask("deliver 15"), "0");
  EXPECT_EQ(member->Ask("leave"), "ok");
  EXPECT_TRUE(Ignores(*member));
}

TEST_F(Shim, TreatsAMembersForkedChildLikeAnyOther) {
  auto member = Member(SIGUSR1);
  const pid_t child = std::stoi(member->Ask("fork"));
  ASSERT_EQ(kill(child, SIGTERM), 0);
  AwaitShielded(1);
  EXPECT_THAT(Shielded(), testing::ElementsAre(child));
  EXPECT_EQ(member->Ask("events"), "0");
  SendFromStranger(child, SIGUSR1);
  EXPECT_EQ(member->Ask("reap " + std::to_string(child)), "signal 10");
  EXPECT_EQ(member->Ask("events"), "0");
}

TEST_F(Shim, GivesAMembersForkedChildTheIgnoredSignalBack) {
  auto member = Member();
  member->Ask("install 15 ignore");
  const pid_t child = std::stoi(member->Ask("fork"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!InSet(child, "SigIgn", SIGTERM) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(InSet(child, "SigIgn", SIGTERM));
}

// ---- passing on ----

TEST_F(Shim, PassesTheTermOnToTheShieldedOnceNoMemberIsAtWork) {
  auto first = Member();
  auto second = Member();
  auto other = Puppet();
  auto handler = Puppet();
  handler->Ask("install 15 plain");
  other->Term();
  handler->Term();
  EXPECT_EQ(other->Ask("ping"), "pong");
  EXPECT_EQ(handler->Ask("handled"), "0");
  EXPECT_EQ(first->Ask("forward 15"), "0");
  EXPECT_EQ(other->Ask("ping"), "pong");
  EXPECT_EQ(second->Ask("forward 15"), "2");
  EXPECT_EQ(other->End(), "signal 15");
  EXPECT_EQ(handler->Ask("handled"), "1");
  EXPECT_EQ(second->Ask("forward 15"), "0");
  EXPECT_EQ(handler->Ask("handled"), "1");
}

TEST_F(Shim, RemovesTheShieldFileWithTheLastMember) {
  auto first = Member();
  auto second = Member();
  EXPECT_EQ(first->Ask("leave"), "ok");
  EXPECT_EQ(access(shield_file_.c_str(), F_OK), 0);
  EXPECT_EQ(second->Ask("leave"), "ok");
  EXPECT_NE(access(shield_file_.c_str(), F_OK), 0);
  EXPECT_EQ(first->Ask("member 0"), "0");  // it works as at first
  auto other = Puppet();
  other->Term();
  EXPECT_EQ(other->Ask("ping"), "pong");
}

TEST_F(Shim, KeepsTheShieldFileUntilItsListWasPassedOn) {
  auto member = Member();
  auto other = Puppet();
  other->Term();
  EXPECT_EQ(other->Ask("ping"), "pong");
  EXPECT_EQ(member->Ask("release"), "ok");
  EXPECT_THAT(Shielded(), testing::ElementsAre(other->pid()));
  EXPECT_EQ(member->Ask("forward 15"), "1");
  EXPECT_EQ(other->End(), "signal 15");
  EXPECT_NE(access(shield_file_.c_str(), F_OK), 0);
}

TEST_F(Shim, LeavesTheShieldFileToTheParentWhenAForkedChildEnds) {
  auto member = Member();
  const pid_t child = std::stoi(member->Ask("fork"));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(member->Ask("reap " + std::to_string(child)), "signal 9");
  EXPECT_EQ(access(shield_file_.c_str(), F_OK), 0);
}

TEST_F(Shim, PassesNothingOnToAProcessOfAnotherStep) {
  auto member = Member();
  std::vector<std::string> environment = TokenEnvironment();
  environment[1] = "SLURM_CAIRN_TOKEN=ffff";
  Program stranger({CAIRN_TEST_PUPPET}, environment);
  EXPECT_EQ(stranger.Ask("ping"), "pong");
  stranger.Term();
  EXPECT_EQ(stranger.Ask("ping"), "pong");
  EXPECT_THAT(Shielded(), testing::ElementsAre(stranger.pid()));
  EXPECT_EQ(member->Ask("forward 15"), "0");
  EXPECT_EQ(stranger.Ask("ping"), "pong");
}

TEST_F(Shim, PassesOnForMembersOnly) {
  auto puppet = Puppet();
  EXPECT_EQ(puppet->Ask("forward 15"), "-1");
}

TEST_F(Shim, TrustsNoFolderThatOthersMayWrite) {
  if (Program({"unshare", "-rm", "true"}, {}).End() != "exit 0") GTEST_SKIP() << "needs a mount namespace";
  auto puppet =
      Start({"unshare", "-rm", "sh", "-c",
             "mount -t tmpfs none /dev/shm && mkdir -m 0777 /dev/shm/cairn-0 && exec " CAIRN_TEST_PUPPET});
  EXPECT_EQ(puppet->Ask("member 0"), "1");
}

// ---- programs that are not ours ----

TEST_F(Shim, KeepsAShellAndItsCommandAliveWhileAMemberIsAtWork) {
  auto member = Member();
  auto shell = Start({"bash", "-c", "bash -c 'echo ready; read line; echo $line'; echo next; read line"});
  EXPECT_EQ(shell->ReadLine(), "ready");
  shell->TermToAll();
  AwaitShielded(2);
  EXPECT_EQ(shell->Ask("still here"), "still here");
  EXPECT_EQ(shell->ReadLine(), "next");
}

TEST_F(Shim, PassesTheTermOnToAShell) {
  auto member = Member();
  auto shell = Start({"bash", "-c", "echo ready; read line; echo never"});
  EXPECT_EQ(shell->ReadLine(), "ready");
  shell->Term();
  AwaitShielded(1);
  EXPECT_EQ(member->Ask("forward 15"), "1");
  EXPECT_EQ(shell->End(), "signal 15");
}

TEST_F(Shim, PassesTheTermOnToTheShellThatWaitsForAMemberThoughAnotherOneIsAtWork) {
  auto other = Member();
  auto shell = Start({"bash", "-c", "bash -c 'echo ready; " CAIRN_TEST_PUPPET "; echo never'; echo never"});
  EXPECT_EQ(shell->ReadLine(), "ready");
  EXPECT_EQ(shell->Ask("member 0"), "0");
  shell->TermToAll();
  AwaitShielded(2);
  EXPECT_EQ(shell->Ask("forward 15"), "2");
  EXPECT_EQ(shell->End(), "signal 15");
  EXPECT_EQ(shell->Ask("ping"), "pong");
  EXPECT_THAT(Shielded(), testing::ElementsAre(0, 0));
  EXPECT_EQ(other->Ask("forward 15"), "0");
}

TEST_F(Shim, RunsAShellsTrap) {
  auto shell = Start({"bash", "-c", "trap 'echo trapped; exit 7' TERM; echo ready; read line; echo never"});
  EXPECT_EQ(shell->ReadLine(), "ready");
  shell->Term();
  EXPECT_EQ(shell->ReadLine(), "trapped");
  EXPECT_EQ(shell->End(), "exit 7");
}

TEST_F(Shim, HoldsAShellsTrapBackUntilItIsPassedOn) {
  auto member = Member();
  auto shell =
      Start({"bash", "-c", "trap 'echo trapped; exit 7' TERM; echo ready; read line; echo $line; read line"});
  EXPECT_EQ(shell->ReadLine(), "ready");
  shell->Term();
  AwaitShielded(1);
  EXPECT_EQ(shell->Ask("still here"), "still here");
  EXPECT_EQ(member->Ask("forward 15"), "1");
  EXPECT_EQ(shell->ReadLine(), "trapped");
  EXPECT_EQ(shell->End(), "exit 7");
}

TEST_F(Shim, LetsPythonSeeTheDefaultAndRunItsHandler) {
  auto python = Start({"python3", "-uc",
                       "import signal, sys\n"
                       "print(signal.getsignal(signal.SIGTERM).name)\n"
                       "def handler(signo, frame):\n"
                       "  print('handled', signo)\n"
                       "  sys.exit(3)\n"
                       "signal.signal(signal.SIGTERM, handler)\n"
                       "print(signal.getsignal(signal.SIGTERM) is handler)\n"
                       "sys.stdin.readline()\n"});
  EXPECT_EQ(python->ReadLine(), "SIG_DFL");
  EXPECT_EQ(python->ReadLine(), "True");
  python->Term();
  EXPECT_EQ(python->ReadLine(), "handled 15");
  EXPECT_EQ(python->End(), "exit 3");
}

TEST_F(Shim, LeavesTheExitStatusOfEnvAlone) {
  auto env = Start({"env", "sh", "-c", "exit 5"});
  EXPECT_EQ(env->End(), "exit 5");
}

// ---- cairn_* without linking ----

TEST_F(Shim, CallsTheLibraryThatTheEnvironmentNames) {
  auto puppet = Puppet("SLURM_CAIRN_LIB=" CAIRN_TEST_FAKE_LIB);
  EXPECT_EQ(puppet->Ask("session"),
            "open 0 session 1 active 1 restore 0 restored 0 at 0 step 41 finalize 0 session 0");
}

TEST_F(Shim, CallsTheLibraryThatTheProgramLinks) {
  auto puppet = Start({CAIRN_TEST_LINKED_PUPPET}, "SLURM_CAIRN_LIB=/nowhere/libcairn.so");
  EXPECT_EQ(puppet->Ask("session"),
            "open 0 session 1 active 1 restore 0 restored 0 at 0 step 41 finalize 0 session 0");
}

TEST_F(Shim, MakesNoOpsOfTheCallsWhereTheLibraryIsMissing) {
  auto puppet = Puppet("SLURM_CAIRN_LIB=/nowhere/libcairn.so");
  EXPECT_EQ(puppet->Ask("session"),
            "open 0 session 1 active 0 restore 0 restored 0 at 0 step 0 finalize 0 session 0");
}

TEST_F(Shim, LooksForAMissingLibraryOnce) {
  const std::string library = testing::TempDir() + job_ + ".so";
  const std::string inert = "open 0 session 1 active 0 restore 0 restored 0 at 0 step 0 finalize 0 session 0";
  auto puppet = Puppet("SLURM_CAIRN_LIB=" + library);
  EXPECT_EQ(puppet->Ask("session"), inert);
  ASSERT_EQ(symlink(CAIRN_TEST_FAKE_LIB, library.c_str()), 0);
  EXPECT_EQ(puppet->Ask("session"), inert);
  unlink(library.c_str());
}

TEST_F(Shim, FailsToOpenWhereProtectionIsRequiredAndTheLibraryIsMissing) {
  auto puppet = Puppet("SLURM_CAIRN_REQUIRE=yes");
  EXPECT_EQ(puppet->Ask("session"), "open -4 session 0");
}

}  // namespace
