// Threads of Cairn inside a program that is not ours.
#ifndef CAIRN_RUNTIME_IO_THREAD_H_
#define CAIRN_RUNTIME_IO_THREAD_H_

#include <signal.h>

#include <functional>
#include <string>
#include <thread>

namespace cairn {

// While it lives the calling thread takes no signal: a thread that it starts inherits that, and no call of it ends with EINTR.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// A thread on which no signal is delivered: the program's handlers run on the program's threads. `name` (its first 15 bytes) is what top and
// gdb show. Throws std::system_error when no thread is to be had, as std::thread does.
std::thread StartThread(std::string name, std::function<void()> run);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_THREAD_H_
