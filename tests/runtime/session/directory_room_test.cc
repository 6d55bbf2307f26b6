#include "runtime/session/directory_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

constexpr SaveNeeds kNeeds = {.bytes = 1000, .files = 10, .saves = 3};

TEST(WhatIsMissing, SaysNothingWhereAllFitsOrNothingIsKnown) {
  EXPECT_EQ(WhatIsMissing({}, kNeeds), "");
  EXPECT_EQ(WhatIsMissing({3000, 30, 3000, 30}, kNeeds), "");
}

TEST(WhatIsMissing, SaysThatTheNextSaveWillFail) {
  EXPECT_EQ(WhatIsMissing({.bytes = 1 << 30, .files = 9}, kNeeds),
            "the file system has room for 9 files, and each save needs 10 files: the next one will fail. "
            "Make room, "
            "have the limit raised, or give another --checkpoint-dir");
}

TEST(WhatIsMissing, SaysWhichOfTheNextSavesWillFail) {
  EXPECT_EQ(WhatIsMissing({.bytes = 5000, .files = 1000, .quota_bytes = 2999, .quota_files = 1000}, kNeeds),
            "your quota has room for 3.0 kB, and each save needs 1.0 kB: number 3 of the next 3 will fail, "
            "before --checkpoint-keep lets anything be pruned. Make room, have the limit raised, or give "
            "another --checkpoint-dir");
}

TEST(WhatIsMissing, NamesTheTightestLimit) {
  EXPECT_THAT(WhatIsMissing({2500, 12, 2100, 25}, kNeeds),
              ::testing::StartsWith("the file system has room for 12 files"));
}

TEST(ReadDirectoryRoom, KnowsTheFileSystemUnderThePath) {
  TempDir temp;
  const DirectoryRoom room = ReadDirectoryRoom(temp / "");
  ASSERT_TRUE(room.bytes.has_value());
  EXPECT_GT(*room.bytes, 0u);
}

TEST(ReadDirectoryRoom, LeavesOutWhatItCannotRead) {
  TempDir temp;
  const DirectoryRoom room = ReadDirectoryRoom(temp / "nowhere");
  EXPECT_FALSE(room.bytes || room.files || room.quota_bytes || room.quota_files);
}

}  // namespace
}  // namespace cairn
