// Rendezvous: how the host process turns registrations into the members' tree. Pure; the messages' payload is CBOR.
//
//  1. member → host  kRendezvousRegister
//  2. host → member  kRendezvousAssign   once all ranks of the session are there; or
//                    kRendezvousFailed   a text: refused, or the bound has passed
#ifndef CAIRN_RUNTIME_CONTROL_RENDEZVOUS_H_
#define CAIRN_RUNTIME_CONTROL_RENDEZVOUS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// Frame types on a connection to the host process; those of host_protocol.h begin at 16.
enum RendezvousMessage : uint16_t { kRendezvousRegister = 1, kRendezvousAssign = 2, kRendezvousFailed = 3 };

struct Registration {
  int rank = 0;
  int world_size = 1;
  std::string node;
  int64_t open_bound_ms = 0;
  std::string local;                   // "@name": for members of the same node; "" where there is none
  std::vector<std::string> addresses;  // "a:port": for other nodes
};
std::string EncodeRegistration(const Registration& r);
Result<Registration> DecodeRegistration(std::string_view payload);

struct Assignment {
  struct Child {
    int rank = 0;
    std::vector<int> covers;  // the ranks reached through it, itself included
  };
  int parent = -1;                            // -1: this is rank 0
  std::vector<std::string> parent_addresses;  // in the order of trial
  std::vector<Child> children;
};
std::string EncodeAssignment(const Assignment& a);
Result<Assignment> DecodeAssignment(std::string_view payload);

// The registrations of one session.
class RendezvousTable {
 public:
  // kInvalid: a rank out of range or another world size; kExists: the rank is there already.
  Status Add(Registration r);
  void Remove(int rank) { members_.erase(rank); }

  bool complete() const { return !members_.empty() && static_cast<int>(members_.size()) == world_size_; }
  Assignment Assign(int rank) const;  // of a complete table

  // "waiting for ranks 3, 5" (at most 16 are named).
  std::string Missing() const;

 private:
  int world_size_ = 0;
  std::map<int, Registration> members_;
  mutable std::map<std::string, std::vector<int>>
      nodes_;  // ranks of each node in order; filled by the first Assign
};

// "ranks 3, 5 and 12 more", "rank 7".
std::string RankList(const std::vector<int>& ranks);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_RENDEZVOUS_H_
