// Mapping: memory that holds an image: of a file in the local tier, or anonymous. Page-aligned, touched, not
// inherited by forked children.
#ifndef CAIRN_RUNTIME_STAGING_MAPPING_H_
#define CAIRN_RUNTIME_STAGING_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "planner/base/status.h"

namespace cairn {

// `bytes`, rounded up to the end of a page.
uint64_t WholePages(uint64_t bytes);

// Asked before each piece of memory is taken: OK to take `bytes` more, or why not.
using MayTakeFunction = std::function<Status(uint64_t bytes)>;

// Move-only owner of one mapping. The destructor unmaps; the file, if any, stays.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  // Takes the memory piece by piece (64 MiB), asking `may_take` before each, and touches every page: neither
  // a full tmpfs (SIGBUS) nor a tight cgroup (a kill) strikes later. `fd` is a new, empty file on a tmpfs,
  // which gets exactly `bytes` bytes; -1 = anonymous memory. The mapping is usable, and zero, up to the end
  // of its last page. kNoSpace, kOutOfMemory, or what `may_take` says; nothing is kept then.
  static Result<Mapping> Make(int fd, uint64_t bytes, const std::string& name,
                              const MayTakeFunction& may_take);

  // The content of a file of `bytes` bytes on a tmpfs. What is stored into the mapping stays in it.
  static Result<Mapping> OfFile(int fd, uint64_t bytes, const std::string& name);

  // The memory that Make of another process took for the same file: each sees what the other stores.
  static Result<Mapping> Share(int fd, uint64_t bytes, const std::string& name);

  std::byte* data() const { return data_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  static Result<Mapping> Map(int fd, uint64_t bytes, int flags, const std::string& name);

  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_MAPPING_H_
