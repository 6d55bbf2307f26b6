// WriteEngine: the one way in which blocks of memory get into files, many at a time. Two are built: io_uring, and threads that call pwrite.
// Whoever drains memory (runtime/staging/drain.h) hands blocks in and takes them back; neither knows more of the other.
//
//   engine = MakeWriteEngine(choice)
//   Submit(block) … up to depth() blocks; each is the engine's until Wait has given it back
//   Wait() → one block that is done, in any order; its error, or 0
//
// Ownership: from Submit until Wait returns its tag, a block's memory must not change and its descriptor must stay open: the kernel reads
// the memory while the caller does something else. The destructor waits for what is in flight.
// Threads: one thread at a time, from construction to destruction. What an engine runs in the background inherits that thread's priority
// and takes no signals. In a forked child an engine must not be touched.
// Errors: of a block, by its errno. EINTR, EAGAIN and short writes are handled inside: a block is done when all of it is written, or cannot be.
// What is done is with the kernel, not on the disk: fsync remains the caller's. A store that hangs hangs Wait and the destructor.
#ifndef CAIRN_RUNTIME_IO_WRITE_ENGINE_H_
#define CAIRN_RUNTIME_IO_WRITE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

struct BlockWrite {
  int fd = -1;
  std::span<const std::byte> bytes;  // not empty; with O_DIRECT: aligned, and whole pages
  uint64_t offset = 0;
  uint64_t tag = 0;  // the caller's; given back by Wait
};

struct BlockDone {
  uint64_t tag = 0;
  int error = 0;  // errno; 0 = all of the block is written
};

class WriteEngine {
 public:
  virtual ~WriteEngine() = default;
  WriteEngine(const WriteEngine&) = delete;
  WriteEngine& operator=(const WriteEngine&) = delete;

  virtual std::string_view name() const = 0;  // "io_uring", "pwrite"; of a literal
  virtual int depth() const = 0;              // so many blocks may be in flight
  virtual int in_flight() const = 0;          // submitted, and not yet given back

  // in_flight() < depth(). Does not wait for the store, as far as the kernel can avoid it.
  virtual void Submit(const BlockWrite& block) = 0;
  // in_flight() > 0. Waits until a block is done, and gives it back.
  virtual BlockDone Wait() = 0;
  // The same without waiting: nothing when none is done.
  virtual std::optional<BlockDone> Poll() = 0;

 protected:
  WriteEngine() = default;
};

enum class Writer { kAuto, kIoUring, kPwrite };

// kAuto is io_uring where the kernel lets us. Where it does not (containers often forbid it, old kernels lack it), it is pwrite, whatever was
// asked for. Never null.
std::unique_ptr<WriteEngine> MakeWriteEngine(Writer writer);

// Why the kernel does not let us use io_uring; OK = it does.
Status CheckIoUring();

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_WRITE_ENGINE_H_
