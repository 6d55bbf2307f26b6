#include "tests/multiprocess/launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace cairn::testing {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "cairn-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool WaitFor(const std::function<bool()>& condition, std::chrono::seconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string Process::Line(const std::string& word) const {
  std::istringstream lines(Out());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(word + " ", 0) == 0) return line.substr(word.size() + 1);
  }
  return "";
}

int Process::exit_code() const {
  if (!ended) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

pid_t Spawn(const std::vector<std::string>& args, const std::map<std::string, std::string>& env, int in,
            const std::string& out, const std::string& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (in >= 0) {
    posix_spawn_file_actions_adddup2(&actions, in, 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<std::string> variables;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    const bool ours = entry.rfind("SLURM", 0) == 0 || entry.rfind("CAIRN_", 0) == 0;
    if (!ours && !env.contains(entry.substr(0, entry.find('=')))) variables.push_back(entry);
  }
  for (const auto& [name, value] : env) variables.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  for (const std::string& v : variables) envp.push_back(const_cast<char*>(v.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + args[0]);
  return pid;
}

}  // namespace

Step::Step(Options options) : options_(std::move(options)) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  options_.env.insert({"XDG_STATE_HOME", folder_.path() + "/state"});  // not the user's registry of runs
  std::map<std::string, std::string> host_env = options_.env;
  host_env["CAIRN_CHECKPOINT"] = host_env.contains("CAIRN_CHECKPOINT") ? host_env["CAIRN_CHECKPOINT"] : "on";
  host_env["CAIRN_DIR"] = options_.dir;
  host_env["CAIRN_HOST_JOB"] = std::to_string(options_.job);
  host_env["CAIRN_HOST_STEP"] = std::to_string(getpid());  // tests that run beside this one have the same job
  host_env["CAIRN_HOST_RESTART"] = std::to_string(options_.restart);
  host_env["CAIRN_HOST_NTASKS"] = std::to_string(options_.ranks);
  host_.out = folder_.path() + "/host.out";
  host_.err = folder_.path() + "/host.err";
  host_.pid = Spawn({CAIRN_COMMAND, "host", "--listen", "127.0.0.1", "--print-env"}, host_env, pipe_ends[0],
                    host_.out, host_.err);
  close(pipe_ends[0]);
  host_stdin_ = pipe_ends[1];
  const auto ready = [this] {  // the last line of what it prints
    const std::string out = host_.Out();
    return out.find("SLURM_CAIRN_HOST_PID=") != std::string::npos && out.back() == '\n';
  };
  if (!WaitFor(ready)) throw std::runtime_error("the host process did not come up: " + host_.Err());
  std::istringstream lines(host_.Out());
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (line.rfind("SLURM_CAIRN_", 0) == 0 && equals != std::string::npos)
      env_[line.substr(0, equals)] = line.substr(equals + 1);
  }
  env_["SLURM_NTASKS"] = std::to_string(options_.ranks);
  env_["SLURM_JOB_ID"] = std::to_string(options_.job);
  env_["SLURM_RESTART_COUNT"] = std::to_string(options_.restart);
  env_["SLURM_CAIRN_STEPD"] = std::to_string(getpid());  // this process plays slurmstepd
#ifdef CAIRN_PRELOAD
  env_["LD_PRELOAD"] = CAIRN_PRELOAD;
#endif
  for (const auto& [name, value] : options_.env) {
    if (!env_.contains("SLURM_" + name)) env_[name] = value;
  }
  if (!options_.launcher.empty()) {
    std::vector<std::string> args = options_.launcher;
    args.insert(args.end(), options_.program.begin(), options_.program.end());
    ranks_.push_back(Start(args, env_, "launcher"));
    return;
  }
  for (int r = 0; r < options_.ranks; ++r) {
    std::vector<std::string> args =
        options_.program.empty() ? std::vector<std::string>{CAIRN_TOY} : options_.program;
    args.insert(args.end(), options_.args.begin(), options_.args.end());
    const auto it = options_.rank_args.find(r);
    if (it != options_.rank_args.end()) args.insert(args.end(), it->second.begin(), it->second.end());
    std::map<std::string, std::string> env = env_;
    env["SLURM_PROCID"] = std::to_string(r);
    env["SLURM_CAIRN_NODE"] = "node" + std::to_string(r / options_.ranks_per_node);
    env["SLURM_LOCALID"] = std::to_string(r % options_.ranks_per_node);
    ranks_.push_back(Start(args, env, "rank" + std::to_string(r)));
  }
}

Process Step::Start(const std::vector<std::string>& args, const std::map<std::string, std::string>& env,
                    const std::string& name) {
  Process process;
  process.out = folder_.path() + "/" + name + ".out";
  process.err = folder_.path() + "/" + name + ".err";
  process.pid = Spawn(args, env, -1, process.out, process.err);
  return process;
}

Step::~Step() {
  KillAll(SIGKILL);
  Join(std::chrono::seconds(10));
  EndHost();
  if (host_.pid > 0) {
    ADD_FAILURE() << "the host process outlives its step";
    kill(host_.pid, SIGKILL);
    waitpid(host_.pid, nullptr, 0);
  }
  // A sanitizer that finds something in one of the processes leaves a report, whatever becomes of the process.
  const std::string log = Log();
  for (const char* sign : {"Sanitizer", "runtime error:"})
    EXPECT_EQ(log.find(sign), std::string::npos) << log;
}

std::string Step::EndHost() {
  if (host_stdin_ >= 0) close(host_stdin_);
  host_stdin_ = -1;
  if (host_.pid > 0 && WaitFor([this] { return waitpid(host_.pid, nullptr, WNOHANG) == host_.pid; }))
    host_.pid = -1;
  return host_.Err();
}

void Step::Kill(int rank, int signo) {
  Process& process = ranks_[static_cast<size_t>(rank)];
  if (!process.ended) kill(process.pid, signo);
}

void Step::KillAll(int signo) {
  Reap();
  for (int r = 0; r < size(); ++r) Kill(r, signo);
}

bool Step::Reap() {
  bool all = true;
  for (Process& process : ranks_) {
    if (!process.ended && waitpid(process.pid, &process.status, WNOHANG) == process.pid) process.ended = true;
    all &= process.ended;
  }
  return all;
}

bool Step::Join(std::chrono::seconds bound) {
  return WaitFor([this] { return Reap(); }, bound);
}

std::string Step::Hash() const {
  uint64_t hash = 0;
  for (const Process& process : ranks_) {
    const std::string text = process.Line("hash");
    if (text.empty()) return "";
    hash ^= std::stoull(text, nullptr, 16);
  }
  std::ostringstream out;
  out << std::hex << hash;
  return out.str();
}

std::string Step::Log() const {
  std::string text = "host: " + host_.Err();
  for (size_t r = 0; r < ranks_.size(); ++r)
    text += "rank " + std::to_string(r) + ": " + ranks_[r].Out() + ranks_[r].Err();
  return text;
}

}  // namespace cairn::testing
