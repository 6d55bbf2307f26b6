// RegistryWriter: appends one step's lines to the user's registry (registry.h) from a thread of its own, since a hanging home directory must
// not hold up the host's answers. The first failure is said on stderr, and ends the writing.
//
// Threads: all functions from one thread.
#ifndef CAIRN_RUNTIME_HOST_REGISTRY_WRITER_H_
#define CAIRN_RUNTIME_HOST_REGISTRY_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/host/directory.h"

namespace cairn {

class RegistryWriter {
 public:
  // Writes nothing where `path` is "".
  RegistryWriter(std::string path, StepIdentity step, std::string dir);
  // Waits for the lines at most 2 s, and then leaves the thread behind in its system call.
  ~RegistryWriter();
  RegistryWriter(const RegistryWriter&) = delete;
  RegistryWriter& operator=(const RegistryWriter&) = delete;

  // Queues a line; see AppendToRegistry.
  void Append(const std::string& event, int64_t saved_step);

 private:
  struct State;
  static void Main(State* state);
  const std::shared_ptr<State> state_;  // the thread's as well
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_REGISTRY_WRITER_H_
