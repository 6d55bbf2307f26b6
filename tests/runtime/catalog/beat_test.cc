#include "runtime/catalog/beat.h"

#include <gtest/gtest.h>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using std::chrono::seconds;
using State = BeatWatch::State;

BeatWatch::Time At(int second) { return BeatWatch::Time(seconds(second)); }
Result<std::optional<Counter>> Read(std::optional<Counter> counter) { return counter; }
Result<std::optional<Counter>> Failure() { return Status(Code::kUnavailable, "no answer"); }

TEST(BeatFile, CountsUpInPlaceUntilItsOwnerLeaves) {
  TempDir dir;
  auto beat = BeatFile::Create(dir / "ALIVE");
  ASSERT_TRUE(beat.ok()) << beat.status().message();
  EXPECT_EQ(*ReadBeat(dir / "ALIVE"), (Counter{1, false}));
  ASSERT_TRUE(beat->Beat().ok());
  EXPECT_EQ(*ReadBeat(dir / "ALIVE"), (Counter{2, false}));
  ASSERT_TRUE(beat->Leave().ok());
  EXPECT_EQ(*ReadBeat(dir / "ALIVE"), (Counter{3, true}));
}

TEST(BeatFile, ThatWasRemovedIsNotMadeAgain) {
  TempDir dir;
  auto beat = BeatFile::Create(dir / "ALIVE");
  ASSERT_TRUE(RemoveFile(dir / "ALIVE").ok());
  EXPECT_EQ(beat->Beat().code(), Code::kNotFound);
  EXPECT_EQ(*ReadBeat(dir / "ALIVE"), std::nullopt);
}

TEST(BeatWatch, SeesACounterMove) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(0)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(4)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{6}), At(5)), State::kMoving);
  EXPECT_EQ(watch.Observe(Read(Counter{6}), At(34)), State::kMoving);
  EXPECT_EQ(watch.Observe(Read(Counter{6}), At(35)), State::kStill);
  EXPECT_EQ(watch.Observe(Read(Counter{7}), At(36)), State::kMoving);
}

TEST(BeatWatch, CallsStillOnlyWhatStoodForTheWholeBound) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(100)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(129)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(130)), State::kStill);
}

TEST(BeatWatch, TakesATornReadForNeitherLifeNorDeath) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(0)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(std::nullopt), At(20)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(29)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(30)), State::kStill);
}

TEST(BeatWatch, OfAFileThatNeverAppearsEndsInStill) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Read(std::nullopt), At(0)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(std::nullopt), At(30)), State::kStill);
  EXPECT_EQ(watch.Observe(Read(Counter{1}), At(31)), State::kMoving);
}

TEST(BeatWatch, CountsStillnessOnlyWhileReadsSucceed) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Failure(), At(0)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Failure(), At(100)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(101)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Failure(), At(120)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Failure(), At(140)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(141)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(170)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(171)), State::kStill);
}

TEST(BeatWatch, SeesAMoveAcrossAFailedRead) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Read(Counter{5}), At(0)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Failure(), At(10)), State::kWaiting);
  EXPECT_EQ(watch.Observe(Read(Counter{6}), At(20)), State::kMoving);
}

TEST(BeatWatch, BelievesAGoodbyeAtOnce) {
  BeatWatch watch;
  EXPECT_EQ(watch.Observe(Read(Counter{5, true}), At(0)), State::kLeft);
}

}  // namespace
}  // namespace cairn
