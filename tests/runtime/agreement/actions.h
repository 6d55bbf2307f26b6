// Helpers that pick actions and messages out of what Leader and Member return.
#ifndef CAIRN_TESTS_RUNTIME_AGREEMENT_ACTIONS_H_
#define CAIRN_TESTS_RUNTIME_AGREEMENT_ACTIONS_H_

#include <gtest/gtest.h>

#include <vector>

#include "runtime/agreement/leader.h"
#include "runtime/agreement/member.h"

namespace cairn::agreement {

inline TimePoint At(int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

// The actions of type T, in order.
template <typename T, typename Actions>
std::vector<T> Of(const Actions& actions) {
  std::vector<T> out;
  for (const auto& action : actions) {
    if (const T* found = std::get_if<T>(&action)) out.push_back(*found);
  }
  return out;
}

// The messages of type M among what the leader broadcasts.
template <typename M>
std::vector<M> Told(const LeaderActions& actions) {
  std::vector<M> out;
  for (const auto& action : Of<Broadcast>(actions)) {
    if (const M* found = std::get_if<M>(&action.message)) out.push_back(*found);
  }
  return out;
}

// The messages of type M among what a member sends.
template <typename M>
std::vector<M> Sent(const MemberActions& actions) {
  std::vector<M> out;
  for (const auto& action : Of<Send>(actions)) {
    if (const M* found = std::get_if<M>(&action.message)) out.push_back(*found);
  }
  return out;
}

}  // namespace cairn::agreement

#endif  // CAIRN_TESTS_RUNTIME_AGREEMENT_ACTIONS_H_
