// Threads of Cairn inside a program that is not ours.
#ifndef CAIRN_RUNTIME_IO_THREAD_H_
#define CAIRN_RUNTIME_IO_THREAD_H_

#include <functional>
#include <thread>

namespace cairn {

// A thread on which no signal is delivered: the program's handlers run on the program's threads. `name` (at most 15 bytes) is what top and
// gdb show. Throws std::system_error when no thread is to be had, as std::thread does.
std::thread StartThread(const char* name, std::function<void()> run);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_THREAD_H_
