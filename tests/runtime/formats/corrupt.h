// What every decoder must survive and report: truncation at every length, and a flip of every single bit.
#ifndef CAIRN_TESTS_RUNTIME_FORMATS_CORRUPT_H_
#define CAIRN_TESTS_RUNTIME_FORMATS_CORRUPT_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

template <typename Decode>
void ExpectEveryCorruptionIsDamage(const std::string& good, Decode decode) {
  ASSERT_TRUE(decode(good).ok()) << decode(good).status().message();
  for (size_t length = 0; length < good.size(); ++length) {
    // A copy of its own, so that a sanitizer sees every read past the end.
    const std::string cut(good.data(), length);
    EXPECT_EQ(decode(cut).status().code(), Code::kDamage) << "cut to " << length << " bytes";
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      EXPECT_EQ(decode(flipped).status().code(), Code::kDamage) << "byte " << at << ", bit " << bit;
    }
  }
  EXPECT_EQ(decode(good + '\0').status().code(), Code::kDamage) << "one byte too long";
}

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_FORMATS_CORRUPT_H_
