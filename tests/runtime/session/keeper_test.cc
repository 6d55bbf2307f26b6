#include "runtime/session/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/marks.h"
#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/session/restore_leader.h"
#include "tests/runtime/session/one_rank.h"
#include "tests/support/memory_store.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Leaders of lives of one rank, which does at once what it is told.
class KeeperTest : public ::testing::Test {
 protected:
  explicit KeeperTest(bool has_table = false) : rank_(1000, has_table) {}

  struct Life {
    Bootstrap boot;
    Mailbox mailbox;
    std::unique_ptr<Keeper> keeper;
    Opened opened;
  };

  // Opens; `job` tells lives apart. That Slurm says that all others are gone does not make it so.
  std::unique_ptr<Life> Begin(const std::string& job) {
    auto life = std::make_unique<Life>();
    life->boot.settings.dir = dir_;
    life->boot.identity.job = job;
    life->boot.node = "n1";
    Keeper::Links links;
    links.log = &log_;
    links.ask_slurm = [](const Identity&) { return HolderInSlurm::kGone; };
    life->keeper = std::make_unique<Keeper>(life->boot, "test", links);
    life->opened = life->keeper->Open();
    EXPECT_TRUE(life->opened.status.ok()) << life->opened.status.message();
    return life;
  }
  Order Restore(Life& life) {
    life.mailbox.Put({0, Inventory::kType, EncodeSessionMessage(Inventory{.node = "n1"})});
    life.mailbox.Put({0, kShareMessage, EncodeShare(rank_.items)});
    Members members(1, {&life.mailbox,
                        [&life](int rank, const Order&) {
                          life.mailbox.Put({rank, Outcome::kType, EncodeSessionMessage(Outcome())});
                        },
                        [&](const Order& order) {
                          told_all_.push_back(order);
                          if (order.kind != Order::kAskRoom) return;
                          for (const auto& [table, rows] : grown_.rows)
                            EXPECT_TRUE(rank_.items.MakeRoom(0, rows).ok());
                          life.mailbox.Put({0, TableRoom::kType, EncodeSessionMessage(grown_)});
                        }});
    Order order = RestoreLeader(life.boot, {}, members, *life.keeper).Lead();
    EXPECT_EQ(order.kind, Order::kProceed) << order.status.message();
    return order;
  }
  std::unique_ptr<Life> BeginAndRestore(const std::string& job) {
    auto life = Begin(job);
    Restore(*life);
    return life;
  }
  // An attempt whose files are written.
  agreement::Commit Write(Life& life, int64_t step) {
    const auto attempt = life.keeper->Prepare(step);
    EXPECT_TRUE(attempt.ok()) << attempt.status().message();
    Stage(*saver_, ++save_);
    const auto record = Drain(*saver_, save_, *attempt);
    EXPECT_TRUE(record.ok()) << record.status().message();
    saver_->Settle(save_, Saver::Worth::kDurable);
    return {.id = save_, .count = step, .label = step, .records = {EncodeSessionMessage(*record)}};
  }
  std::string Save(Life& life, int64_t step) {
    const auto report = life.keeper->Commit(Write(life, step), std::chrono::steady_clock::now());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report->name;
  }
  RunDirectory Directory() const { return *RunDirectory::OpenExisting(dir_); }

  TempDir tmp_;
  std::string dir_ = tmp_ / "run";
  Log log_{tmp_ / "log", ""};
  OneRank rank_;
  std::unique_ptr<Saver> saver_ = rank_.MakeSaver(0);
  uint64_t save_ = 0;
  TableRoom grown_;  // in a restore
  std::vector<Order> told_all_;
};

class KeeperOfATableTest : public KeeperTest {
 protected:
  KeeperOfATableTest() : KeeperTest(true) {}

  std::vector<Order::Kind> Kinds() const {
    std::vector<Order::Kind> kinds;
    for (const Order& order : told_all_) kinds.push_back(order.kind);
    return kinds;
  }
};

// The layout is planned and told once; again only where a table has grown in the restore, and then what has changed of it.
TEST_F(KeeperOfATableTest, WhatARestoreHasNotChangedIsNotToldAgain) {
  Save(*BeginAndRestore("1"), 10);
  EXPECT_THAT(Kinds(), ElementsAre(Order::kLayout));

  told_all_.clear();
  const auto same = BeginAndRestore("2");
  EXPECT_THAT(Kinds(), Contains(Order::kAskRoom));
  EXPECT_THAT(Kinds(), Not(Contains(Order::kRoom)));
  EXPECT_EQ(
      std::count_if(told_all_.begin(), told_all_.end(), [](const Order& o) { return !o.state.empty(); }), 1);
  Save(*same, 20);

  told_all_.clear();
  grown_.rows = {{"p", 5}};
  const auto grown = BeginAndRestore("3");
  ASSERT_THAT(Kinds(), Contains(Order::kRoom));
  const auto told =
      std::find_if(told_all_.begin(), told_all_.end(), [](const Order& o) { return o.kind == Order::kRoom; });
  EXPECT_EQ(told->table_rooms, (TableRooms{{"p", {{0, 5}}}}));
  EXPECT_EQ(told->state, "");
  ASSERT_TRUE(SetRooms(told->table_rooms, &rank_.state).ok());
  rank_.items.PlaceTable(0, 0, 5);
  saver_ = rank_.MakeSaver(0);
  const std::string saved = Save(*grown, 30);  // refused if the plan were for three rows
  const auto checkpoint = LoadCheckpoint(Directory(), saved);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->index.saved.arrays[1].shape, (Dims{5, 16}));
}

TEST(CheckMerged, CountsWhatEachMemberWillGetOfAll) {
  const Blobs blobs{
      .items = {{"note", BlobPolicy::kMerge, {"12345", std::nullopt, "67890"}},
                {"rows", BlobPolicy::kMerge, {"1", "2", "3"}},
                {"seed", BlobPolicy::kReseed, {std::string(1000, 's'), std::nullopt, std::nullopt}}}};
  EXPECT_TRUE(CheckMerged(blobs, 13).ok());
  EXPECT_EQ(CheckMerged(blobs, 12).code(), Code::kInvalid);
}

TEST_F(KeeperTest, TheOwnerRecordsThatTheRunIsFinished) {
  const auto life = BeginAndRestore("1");
  Save(*life, 10);
  EXPECT_TRUE(life->keeper->Finish().ok());
  const RunDirectory dir = Directory();
  EXPECT_TRUE(*IsFinished(dir, *ListCheckpoints(dir)));
}

TEST_F(KeeperTest, ALifeThatWasOvertakenNeitherFinishesNorCommitsNorPrunes) {
  const auto stale = BeginAndRestore("1");
  stale->boot.settings.keep = {{KeepRule::kLast, 1}};
  const std::string first = Save(*stale, 10), second = Save(*stale, 20);
  const agreement::Commit late = Write(*stale, 30);
  const auto newer = BeginAndRestore("2");
  EXPECT_EQ(newer->opened.epoch, 2u);
  EXPECT_EQ(stale->keeper->Finish().code(), Code::kFenced);
  EXPECT_FALSE(fs::exists(dir_ + "/" + std::string(names::kFinished)));
  EXPECT_EQ(stale->keeper->Commit(late, std::chrono::steady_clock::now()).status().code(), Code::kFenced);
  stale->keeper->Prune();
  const Listing listing = *ListCheckpoints(Directory());
  ASSERT_EQ(listing.checkpoints.size(), 2u);
  EXPECT_EQ(listing.checkpoints[0].name, second);
  EXPECT_EQ(listing.checkpoints[1].name, first);
}

TEST_F(KeeperTest, WhatWasGivenUpIsNotCommitted) {
  const auto life = BeginAndRestore("1");
  const agreement::Commit late = Write(*life, 10);
  life->keeper->Abandon();
  EXPECT_EQ(life->keeper->Commit(late, std::chrono::steady_clock::now()).status().code(), Code::kCancelled);
  Save(*life, 20);
}

TEST_F(KeeperTest, NothingIsBegunInADirectoryThatWasGivenUp) {
  const auto life = BeginAndRestore("1");
  life->keeper->Close();
  EXPECT_EQ(life->keeper->Prepare(10).status().code(), Code::kCancelled);
  for (const auto& entry : fs::directory_iterator(dir_))
    EXPECT_FALSE(entry.path().filename().string().starts_with("step-")) << entry.path();
}

TEST_F(KeeperTest, TheNextLifeGoesOnFromTheNewest) {
  {
    const auto life = BeginAndRestore("1");
    Save(*life, 10);
    Save(*life, 20);
  }
  const auto next = Begin("2");
  const Order order = Restore(*next);
  EXPECT_TRUE(order.restored);
  EXPECT_EQ(order.step, 20);
}

// No disk holds what --checkpoint-keep asks for here.
TEST_F(KeeperTest, SaysBeforeTheFirstSaveAndOnceThatTheDirectoryHasNoRoomForAll) {
  const auto said = [this] {
    const Result<std::string> log = ReadAll(tmp_ / "log", 1 << 20);
    return log.ok() ? *log : "";
  };
  {
    const auto life = Begin("1");
    life->boot.settings.keep = {{KeepRule::kLast, 1000000000000000}};
    EXPECT_THAT(said(), Not(HasSubstr("will fail")));
    Restore(*life);
    EXPECT_THAT(said(), ContainsRegex(
                            dir_ + ": (the file system|your quota) has room for .*, and each save needs .*: "
                                   "number [0-9]+ of the next 1000000000000001 will fail"));
    const std::string before = said();
    Save(*life, 10);
    Save(*life, 20);
    EXPECT_THAT(said().substr(before.size()), Not(HasSubstr("will fail")));
  }
  const auto next = Begin("2");  // has two of them
  next->boot.settings.keep = {{KeepRule::kLast, 1000000000000000}};
  Restore(*next);
  EXPECT_THAT(said(), HasSubstr(" of the next 999999999999999 will fail"));
}

TEST_F(KeeperTest, ABucketThatCannotBeReachedIsNoneToBeginFrom) {
  const auto memory = std::make_shared<MemoryStore>();
  bool away = false;
  const StoreInUse in_use(std::make_shared<FaultyStore>(memory, [&](std::string_view, const std::string&) {
    return away ? FaultyStore::Fate::kFail : FaultyStore::Fate::kPass;
  }));
  dir_ = "s3://bucket/run";
  ASSERT_TRUE(RunDirectory::Open(dir_, "test").ok());
  away = true;
  Bootstrap boot;
  boot.settings.dir = dir_;
  Keeper keeper(boot, "test", {&log_, [](const Identity&) { return HolderInSlurm::kGone; }});
  const Opened opened = keeper.Open();
  EXPECT_EQ(opened.status.code(), Code::kUnavailable);
  EXPECT_THAT(opened.status.message(), HasSubstr("it is not known whether there is something to resume"));
}

// A mount that is missing when the job begins, and there when it saves.
class LateKeeperTest : public KeeperTest {
 protected:
  LateKeeperTest() {
    fs::create_symlink(tmp_ / "elsewhere", tmp_ / "mount");
    dir_ = tmp_ / "mount/run";
  }
  void Mount() { ASSERT_TRUE(fs::create_directory(tmp_ / "elsewhere")); }
};

TEST_F(LateKeeperTest, ALateClaimKeepsWhatTheLifesOwnRanksWroteThrough) {
  const auto life = BeginAndRestore("1");
  EXPECT_EQ(life->opened.epoch, 0u);
  Mount();
  const std::string own = dir_ + "/" + names::StagingFolder({life->opened.claim, 0});
  ASSERT_TRUE(MakeDirectories(own).ok());
  Save(*life, 10);
  EXPECT_TRUE(fs::exists(own));
}

TEST_F(LateKeeperTest, NothingIsSavedOverCheckpointsThatTheLifeDidNotBeginFrom) {
  const auto late = BeginAndRestore("1");
  Mount();
  std::string newest;
  {
    const auto other = BeginAndRestore("2");
    newest = Save(*other, 40);
    other->keeper->Close();
  }
  for (int tries = 0; tries < 2; ++tries) {
    const auto attempt = late->keeper->Prepare(10);
    EXPECT_EQ(attempt.status().code(), Code::kBusy);
    EXPECT_THAT(attempt.status().message(),
                HasSubstr("holds " + newest + ", which this job did not begin from"));
  }
}

}  // namespace
}  // namespace cairn
