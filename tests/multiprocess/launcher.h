// Launcher: starts a step of ranks without Slurm: a host process and N copies of a program, each with its environment. For tests.
#ifndef CAIRN_TESTS_MULTIPROCESS_LAUNCHER_H_
#define CAIRN_TESTS_MULTIPROCESS_LAUNCHER_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cairn::testing {

// A temporary folder, removed with everything in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Polls `condition` until it holds; false after `bound`.
bool WaitFor(const std::function<bool()>& condition, std::chrono::seconds bound = std::chrono::seconds(60));

std::string ReadFile(const std::string& path);

struct Process {
  pid_t pid = -1;
  int status = 0;  // as waitpid gave it, once it has ended
  bool ended = false;
  std::string out, err;  // paths

  std::string Out() const { return ReadFile(out); }
  std::string Err() const { return ReadFile(err); }
  // The rest of the first line of stdout that begins with `word` and a space; "" when there is none yet.
  std::string Line(const std::string& word) const;
  int exit_code() const;  // −1 while it runs; 128 + signal when it was killed
};

class Step {
 public:
  struct Options {
    int ranks = 1;
    std::string dir;                // CAIRN_DIR
    std::vector<std::string> args;  // of toy, for every rank
    std::map<int, std::vector<std::string>> rank_args;
    std::map<std::string, std::string> env;  // more variables
    int job = 100;
    int restart = 0;
    int ranks_per_node = 2;
    std::vector<std::string> program;  // instead of toy; takes no args
    std::vector<std::string>
        launcher;  // starts all ranks as its children: mpirun and its options. Then the launcher alone is rank(0)
  };

  explicit Step(Options options);
  ~Step();  // kills the ranks that still run, ends the host process, and fails the test if a sanitizer found anything in them

  Process& rank(int r) { return ranks_[static_cast<size_t>(r)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::map<std::string, std::string>& env() const { return env_; }  // what the ranks were given

  Process Start(const std::vector<std::string>& args, const std::map<std::string, std::string>& env,
                const std::string& name);

  void Kill(int rank, int signo);
  void KillAll(int signo);
  // As srun's end does: the host process sees EOF and ends. What it said in all.
  std::string EndHost();
  // Waits for all ranks to end; false after `bound`.
  bool Join(std::chrono::seconds bound = std::chrono::seconds(100));
  bool Reap();  // true when all ranks have ended

  // xor of all ranks' hashes; "" when one is missing.
  std::string Hash() const;
  // Standard error of all ranks and the host, for messages.
  std::string Log() const;

 private:
  Options options_;
  TempDir folder_;
  std::map<std::string, std::string> env_;
  Process host_;
  int host_stdin_ = -1;
  std::vector<Process> ranks_;
};

}  // namespace cairn::testing

#endif  // CAIRN_TESTS_MULTIPROCESS_LAUNCHER_H_
