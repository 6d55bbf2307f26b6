#include "runtime/io/thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace cairn {
namespace {

// A new thread inherits the mask of the one that starts it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread StartThread(const char* name, std::function<void()> run) {
  const SignalsBlocked blocked;
  return std::thread([name, run = std::move(run)] {
    pthread_setname_np(pthread_self(), name);
    run();
  });
}

}  // namespace cairn
