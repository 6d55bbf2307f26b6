#include "runtime/io/thread.h"

#include <pthread.h>

#include <utility>

namespace cairn {

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::thread StartThread(std::string name, std::function<void()> run) {
  const SignalsBlocked blocked;
  return std::thread([name = std::move(name), run = std::move(run)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    run();
  });
}

}  // namespace cairn
