// MemoryRoom: how much memory this node still lets us use before somebody is killed. tmpfs files count like
// any other memory.
//
// The room is the least of what all ancestor cgroups (v1 and v2) leave, what Slurm's memory limit leaves, and
// what the kernel calls available. Reclaimable page cache (inactive_file) does not count as used. Reads files
// only through the function given, so that recorded trees can be parsed.
#ifndef CAIRN_RUNTIME_STAGING_MEMORY_ROOM_H_
#define CAIRN_RUNTIME_STAGING_MEMORY_ROOM_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cairn {

struct MemoryRoom {
  uint64_t bytes = UINT64_MAX;
  std::string bound_by =
      "nothing";  // what sets it, for people: "memory cgroup /slurm/uid_1000/job_7 (64.0 GB, 12.0 GB used)"
};

// The content of a file, or nothing when it cannot be read.
using ReadFileFunction = std::function<std::optional<std::string>(const std::string& path)>;
// The value of an environment variable, or nothing.
using GetEnvFunction = std::function<std::optional<std::string>(const std::string& name)>;

// Of the whole node's part of the job, in bytes. Slurm's limit is compared with this process's resident set
// times `ranks_on_node`.
MemoryRoom ReadMemoryRoom(const ReadFileFunction& read, const GetEnvFunction& get_env, int ranks_on_node);

// The same of the machine and environment that this process lives in.
MemoryRoom ReadMemoryRoom(int ranks_on_node);

// What stays free for the program itself: 5 % of the room, at least 64 MiB.
uint64_t WithoutHeadRoom(uint64_t room_bytes);

std::string FormatBytes(uint64_t bytes);  // "38.2 GB": for people

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_MEMORY_ROOM_H_
