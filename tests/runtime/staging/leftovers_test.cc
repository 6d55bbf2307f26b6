#include "runtime/staging/leftovers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include "runtime/formats/names.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr char kRun[] = "0123456789abcdef";
LocalTierOptions In(const std::string& dir) { return {.setting = dir, .job = "71", .node = "n1"}; }
std::string UserFolder(const std::string& dir) { return dir + "/cairn-" + std::to_string(geteuid()); }

std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> entries;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) entries.push_back(entry.path());
  return entries;
}

// Runs `fn` in a child that then dies without a word.
void InChildThatIsKilled(const std::function<void()>& fn) {
  const pid_t child = fork();
  if (child == 0) {
    fn();
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

ImagePlan OneImage() {
  ImagePlan plan;
  plan.images.push_back({.number = 1, .header = std::string(16, 'h'), .size_bytes = 5000});
  plan.bytes = 5000;
  return plan;
}

// A rank with one slot that dies when the slot's state is `state`.
void LeaveSlot(const LocalTierOptions& options, SlotState state, const std::string& run = kRun) {
  InChildThatIsKilled([&] {
    auto tier = LocalTier::Open(options);
    if (!tier.ok()) _exit(1);
    auto slot = MemorySlot::Make(*tier, OneImage(), 0, TakeAll());
    const RecordShape shape{run, {{"seed", 4}}};
    auto memory = tier->Map("slot0.record", SlotRecord::BytesFor(shape), TakeAll());
    if (!slot.ok() || !memory.ok() || !tier->Write(kLayoutFile, EncodeLayoutFile("the layout")).ok())
      _exit(1);
    Sidecar sidecar = (*slot)->sidecar();
    sidecar.Begin({.epoch = 3, .save_id = 5, .boundary = 40, .rank = 1, .world_size = 2});
    const SlotRecord record(memory->data(), shape);
    record.Stamp({.label = 400, .count = 40});
    record.StoreBlob(0, reinterpret_cast<const std::byte*>("abcd"), 4);
    std::memset((*slot)->image(0) + 16, 'd', 5000 - 16);
    if (state == SlotState::kStaged || state == SlotState::kHashed) sidecar.MarkStaged();
    if (state == SlotState::kHashed) sidecar.MarkHashed({});
    if (state == SlotState::kEmpty) sidecar.Void();
    new LocalTier(*std::move(tier));
  });
}

TEST(Leftovers, ListsTheWholeSlotsOfDeadRanksOfThisJobAndNode) {
  TempDir dir;
  const auto living = LocalTier::Open(In(dir.path()));
  ASSERT_TRUE(living.ok());
  ASSERT_TRUE(MemorySlot::Make(*living, OneImage(), 0, TakeAll()).ok());
  LeaveSlot(In(dir.path()), SlotState::kStaged);
  LeaveSlot({.setting = dir.path(), .job = "71", .node = "n2"}, SlotState::kStaged);
  LeaveSlot({.setting = dir.path(), .job = "7", .node = "n1"}, SlotState::kStaged);
  const auto left = Leftovers::Open(In(dir.path()));
  ASSERT_TRUE(left.ok()) << left.status().message();
  const std::vector<LeftSlot> slots = left->List();
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_THAT(slots[0].folder, MatchesRegex("71\\.n1\\.[0-9a-f]{8}"));
  EXPECT_EQ(slots[0].slot, "slot0");
  EXPECT_EQ(slots[0].id, (SnapshotId{.epoch = 3, .save_id = 5, .boundary = 40, .rank = 1, .world_size = 2}));
  EXPECT_EQ(slots[0].run_id, kRun);
  EXPECT_EQ(slots[0].stamp, (SnapshotStamp{.label = 400, .count = 40}));
  EXPECT_TRUE(slots[0].has_layout);
  EXPECT_EQ(EntriesOf(UserFolder(dir.path())).size(), 4u);
}

TEST(Leftovers, CountsASlotFromStagedOnWithAWholeRecordAndRemovesWhatHoldsNone) {
  for (const SlotState state :
       {SlotState::kEmpty, SlotState::kFilling, SlotState::kStaged, SlotState::kHashed}) {
    TempDir dir;
    LeaveSlot(In(dir.path()), state);
    const bool whole = state == SlotState::kStaged || state == SlotState::kHashed;
    EXPECT_EQ(Leftovers::Open(In(dir.path()))->List().size(), whole ? 1u : 0u) << SlotStateName(state);
    EXPECT_EQ(EntriesOf(UserFolder(dir.path())).size(), whole ? 1u : 0u) << SlotStateName(state);
  }
  TempDir dir;
  LeaveSlot(In(dir.path()), SlotState::kStaged);
  const std::string record = EntriesOf(UserFolder(dir.path())).front() + "/slot0.record";
  std::filesystem::resize_file(record, std::filesystem::file_size(record) - 1);
  EXPECT_THAT(Leftovers::Open(In(dir.path()))->List(), IsEmpty());
}

TEST(Leftovers, GivesTheImagesAndWritesNothingIntoThem) {
  TempDir dir;
  LeaveSlot(In(dir.path()), SlotState::kStaged);
  const auto left = Leftovers::Open(In(dir.path()));
  const LeftSlot slot = left->List().at(0);
  EXPECT_EQ(*left->ReadLayout(slot.folder), "the layout");
  const std::string image = UserFolder(dir.path()) + "/" + slot.folder + "/slot0." + names::Shard(1);
  EXPECT_THAT(left->ImagePaths(slot.folder, slot.slot), ElementsAre(std::pair(1u, image)));
  {
    const auto adopted = left->Adopt(slot.folder, slot.slot, OneImage());
    ASSERT_TRUE(adopted.ok()) << adopted.status().message();
    EXPECT_EQ(adopted->record.blobs.at("seed"), "abcd");
    EXPECT_EQ(std::memcmp(adopted->slot->image(0), "hhhhhhhhhhhhhhhhdddd", 20), 0);
    adopted->slot->sidecar().MarkHashed(Hash128Of(std::string_view("whatever was found")));
  }
  EXPECT_EQ(left->Adopt(slot.folder, slot.slot, OneImage())->sidecar.state, SlotState::kStaged);
}

TEST(Leftovers, RefusesImagesThatAreNotThoseOfThePlan) {
  TempDir dir;
  LeaveSlot(In(dir.path()), SlotState::kStaged);
  const auto left = Leftovers::Open(In(dir.path()));
  const LeftSlot slot = left->List().at(0);
  ImagePlan longer = OneImage(), other_header = OneImage(), another = OneImage();
  longer.images[0].size_bytes = 5001;
  other_header.images[0].header[3] = 'x';
  another.images[0].number = 2;
  for (const ImagePlan& plan : {longer, other_header, another})
    EXPECT_EQ(left->Adopt(slot.folder, slot.slot, plan).status().code(), Code::kDamage);
  EXPECT_EQ(left->Adopt("71.n2.00000000", "slot0", OneImage()).status().code(), Code::kDamage);
  EXPECT_FALSE(left->Adopt("../elsewhere", "slot0", OneImage()).ok());
}

TEST(Leftovers, RemovesTheFoldersOfItsRunAloneAndNeverThoseOfTheLiving) {
  TempDir dir;
  const auto living = LocalTier::Open(In(dir.path()));
  LeaveSlot(In(dir.path()), SlotState::kStaged);
  LeaveSlot(In(dir.path()), SlotState::kStaged, "fedcba9876543210");
  const auto left = Leftovers::Open(In(dir.path()));
  left->Remove(kRun);
  ASSERT_EQ(left->List().size(), 1u);
  EXPECT_EQ(left->List()[0].run_id, "fedcba9876543210");
  EXPECT_TRUE(std::filesystem::exists(living->path()));
}

TEST(Leftovers, ARankThatWasKilledIsDeadThoughItsForkedChildLivesOn) {
  TempDir dir;
  int pid_pipe[2];
  ASSERT_EQ(pipe(pid_pipe), 0);
  InChildThatIsKilled([&] {
    auto tier = LocalTier::Open(In(dir.path()));
    if (!tier.ok() || !tier->Map("image", 5000, TakeAll()).ok()) _exit(1);
    if (fork() == 0) {
      const pid_t self = getpid();
      if (write(pid_pipe[1], &self, sizeof self) != sizeof self) _exit(1);
      for (;;) pause();
    }
    new LocalTier(*std::move(tier));
  });
  close(pid_pipe[1]);
  pid_t worker = 0;
  ASSERT_EQ(read(pid_pipe[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  close(pid_pipe[0]);
  EXPECT_THAT(Leftovers::Open(In(dir.path()))->List(), IsEmpty());
  EXPECT_THAT(EntriesOf(UserFolder(dir.path())), IsEmpty());
  kill(worker, SIGKILL);
}

TEST(Leftovers, AreNothingWhereImagesLiveInAnonymousMemory) {
  const auto left = Leftovers::Open({.setting = "none"});
  ASSERT_TRUE(left.ok());
  EXPECT_THAT(left->List(), IsEmpty());
  TempDir dir;
  EXPECT_THAT(Leftovers::Open(In(dir.path()))->List(), IsEmpty());  // no rank was ever here
}

}  // namespace
}  // namespace cairn
