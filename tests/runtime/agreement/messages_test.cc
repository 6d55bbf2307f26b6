#include "runtime/agreement/messages.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn::agreement {
namespace {

using std::chrono::milliseconds;
using namespace std::string_literals;

TEST(AgreementMessages, EveryMessageComesBackAsItWasSent) {
  const ToLeader to_leader[] = {Request{kTriggerPreempt, milliseconds(30000), "best"},
                                Request{kTriggerInterval, kNoLimit, ""},
                                Count{7, 120, milliseconds(3), Mode::kQuiet},
                                Ack{7},
                                Nack{7, 121},
                                Abort{7},
                                Staged{7, 120, -5, true},
                                Record{7, "\0\xff bytes"s},
                                Failed{7, "no space on /dev/shm"},
                                Finalized{400, true},
                                Sync{}};
  static_assert(std::variant_size_v<ToLeader> == 10);
  for (const ToLeader& m : to_leader) {
    const auto back = DecodeToLeader(Encode(m));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, m);
  }
  const ToMember to_member[] = {Poll{8},
                                ArmAt{8, 122, milliseconds(9)},
                                Go{8},
                                Drain{8, "step-000000000122.e1.8"},
                                Committed{8},
                                Drop{8, true, "rank 3 is gone"},
                                Answer{false, "no"},
                                Close{true, ""},
                                Synced{}};
  static_assert(std::variant_size_v<ToMember> == 9);
  for (const ToMember& m : to_member) {
    const auto back = DecodeToMember(Encode(m));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, m);
  }
}

TEST(AgreementMessages, TheWireFormIsTheOneDocumented) {
  EXPECT_EQ(Encode(ToMember(Go{0x0102})), "\x02\x02\x01\0\0\0\0\0\0"s);
  EXPECT_EQ(Encode(ToLeader(Request{kTriggerTimeLimit, Nanoseconds(3), "ab"})),
            "\x00\x02\x03\0\0\0\0\0\0\0\x02\0\0\0ab"s);
}

TEST(AgreementMessages, EveryTruncationAndEverySurplusByteIsRefused) {
  const std::string whole = Encode(ToMember(Drop{3, true, "why"}));
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(DecodeToMember(whole.substr(0, n)).status().code(), Code::kInvalid) << n;
  }
  EXPECT_EQ(DecodeToMember(whole + "x").status().code(), Code::kInvalid);
}

TEST(AgreementMessages, ValuesThatNoSenderMakesAreRefused) {
  EXPECT_FALSE(DecodeToMember("\x09"s).ok());                              // unknown type
  EXPECT_FALSE(DecodeToMember("\x06\x02\0\0\0\0"s).ok());                  // bool 2
  EXPECT_FALSE(DecodeToLeader("\x00\x03\0\0\0\0\0\0\0\0\0\0\0\0"s).ok());  // two reasons at once
  EXPECT_FALSE(DecodeToLeader("\x00\x00\0\0\0\0\0\0\0\0\0\0\0\0"s).ok());  // none
  EXPECT_FALSE(DecodeToLeader(Encode(ToLeader(Nack{1, -1}))).ok());
  EXPECT_FALSE(DecodeToLeader(Encode(ToLeader(Nack{1, int64_t{1} << 62}))).ok());
  EXPECT_FALSE(DecodeToLeader(Encode(ToLeader(Count{1, 1, Nanoseconds(-1), Mode::kQuiet}))).ok());
  EXPECT_FALSE(DecodeToLeader(Encode(ToLeader(Count{1, 1, {}, static_cast<Mode>(3)}))).ok());
  EXPECT_FALSE(DecodeToLeader("\x07\x01\0\0\0\0\0\0\0\xff\xff\xff\xff"s).ok());  // a length beyond the end
}

TEST(AgreementMessages, WhateverDecodesFromRandomBytesEncodesToTheSameBytes) {
  std::mt19937 random(1);
  int decoded = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string bytes(random() % 24, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 4 ? 0 : random());
    if (!bytes.empty()) bytes[0] = static_cast<char>(random() % 11);
    const auto to_leader = DecodeToLeader(bytes);
    const auto to_member = DecodeToMember(bytes);
    if (to_leader.ok()) {
      EXPECT_EQ(Encode(*to_leader), bytes);
    }
    if (to_member.ok()) {
      EXPECT_EQ(Encode(*to_member), bytes);
    }
    decoded += to_leader.ok() + to_member.ok();
  }
  EXPECT_GT(decoded, 1000);
}

}  // namespace
}  // namespace cairn::agreement
