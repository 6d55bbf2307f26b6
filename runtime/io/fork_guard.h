// ForkGuard: what makes Cairn inert in a forked child.
//
// A child of fork() has Cairn's memory but none of its threads, and shares its sockets: a worker that lives
// on would keep a dead member's connections open, its locks, and the space of files that have been removed. So every descriptor of Cairn is registered here; a
// pthread_atfork handler closes all of them in the child and moves the generation on. Objects that own a
// thread remember the generation in which they were made and do nothing in another one. Exec is covered by
// CLOEXEC, which every descriptor of Cairn has.
#ifndef CAIRN_RUNTIME_IO_FORK_GUARD_H_
#define CAIRN_RUNTIME_IO_FORK_GUARD_H_

#include <cstdint>

namespace cairn {

class ForkGuard {
 public:
  // From open to close, from any thread. Descriptors above 65535 are left to CLOEXEC.
  static void Own(int fd);
  // Whether it is to be closed: in a child it has been, and the number may be another's by now.
  static bool Disown(int fd);

  // 0 in the first process, one more in each generation of children.
  static uint64_t Generation();
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_FORK_GUARD_H_
