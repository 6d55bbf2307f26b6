// TracedChild: runs a piece of work in a child process that stops before and after each of its system calls, to see what is left when it dies
// there, or what becomes of it when something happens there. One thread in the child.
#ifndef CAIRN_TESTS_RUNTIME_TRACED_CHILD_H_
#define CAIRN_TESTS_RUNTIME_TRACED_CHILD_H_

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace cairn {

class TracedChild {
 public:
  static bool Possible() {
    return TracedChild([] { return 0; }).Finish() == 0;
  }  // some containers forbid it

  // `work` returns the exit status, less than kNoTrace.
  explicit TracedChild(const std::function<int()>& work) : pid_(fork()) {
    if (pid_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNoTrace);
      raise(SIGSTOP);
      _exit(work());
    }
    waitpid(pid_, &status_, 0);
  }
  ~TracedChild() { Kill(); }
  TracedChild(const TracedChild&) = delete;
  TracedChild& operator=(const TracedChild&) = delete;

  // On to the next stop; false: it has ended.
  bool Step() {
    if (WIFSTOPPED(status_)) {
      ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr);
      waitpid(pid_, &status_, 0);
    }
    return WIFSTOPPED(status_);
  }
  void Kill() {
    if (!WIFSTOPPED(status_)) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
  }
  // Lets it come to its end: its exit status, −1 = it was killed.
  int Finish() {
    while (Step()) {
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  static constexpr int kNoTrace = 77;
  const pid_t pid_;
  int status_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_TRACED_CHILD_H_
