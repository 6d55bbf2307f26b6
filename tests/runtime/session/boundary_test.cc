#include "runtime/session/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "planner/save_plan.h"
#include "tests/runtime/session/one_rank.h"

namespace cairn {
namespace {

using namespace agreement;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr seconds kPatience{60};  // what has not come by then fails the test

// A disk that may hang: fsync of this program returns only when it does not.
class Disk {
 public:
  void Hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  // One call, and no other meanwhile.
  void HangOnce() {
    const std::lock_guard lock(mutex_);
    hangs_ = once_ = true;
  }
  void Answer() {
    const std::lock_guard lock(mutex_);
    hangs_ = once_ = false;
    changed_.notify_all();
  }
  bool AwaitVictim() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return victims_ > 0; });
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    if (!hangs_ || (once_ && victims_ > 0)) return;
    ++victims_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hangs_; });
    --victims_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false, once_ = false;
  int victims_ = 0;
};
Disk disk;

// Rank 0, whose partner has not said where it is; the test is the leader.
class BoundaryTest : public ::testing::Test {
 protected:
  BoundaryTest() {
    boot_.settings.boundary_wait = kPatience;
    boot_.world_size = 2;
    auto tier = LocalTier::Open({.setting = folder_.path(), .job = "7", .node = "n1"});
    EXPECT_TRUE(tier.ok());
    tier_.emplace(*std::move(tier));
    const Layout layout{.world_size = 2};
    auto slots = PartnerSlots::Make(
        *tier_, layout, *PlanSave(layout), {}, [](uint64_t) { return OkStatus(); },
        [](uint32_t, uint64_t) {});
    EXPECT_TRUE(slots.ok());
    auto link = PartnerLink::Make({.key = "12.0.0", .session = "main", .purpose = kPartnerPurpose}, &book_, 1,
                                  *std::move(slots), [](const std::string&) {});
    EXPECT_TRUE(link.ok());
    boundary_.emplace(boot_, &log_, [this](uint16_t type, const std::string& payload) {
      auto message = DecodeToLeader(payload);
      if (type != kToLeaderMessage || !message.ok()) return;
      const std::lock_guard lock(mutex_);
      sent_.push_back(*std::move(message));
      changed_.notify_all();
    });
    boundary_->Equip(rank_.MakeSaver(0), *std::move(link));
  }
  ~BoundaryTest() override { boundary_->EndThreads(); }

  void Say(const ToMember& message) { boundary_->OnMessage(message); }
  template <typename M>
  void Await() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kPatience, [this] { return next_ < sent_.size(); }));
    const Failed* failed = std::get_if<Failed>(&sent_[next_]);
    ASSERT_TRUE(std::holds_alternative<M>(sent_[next_])) << (failed != nullptr ? failed->why : "");
    ++next_;
  }
  // All members are ready for a snapshot at this boundary.
  void Clear(SaveId id, int64_t boundary) {
    Say(Poll{id});
    Await<Count>();
    Say(ArmAt{id, boundary, kNoLimit});
    Await<Ack>();
    Say(Go{id});
  }
  void Step(int64_t count) {
    if (boundary_->Pass(count)) boundary_->Arrive();
  }
  std::string Said() {
    std::ostringstream text;
    text << std::ifstream(folder_ / "log").rdbuf();
    return text.str();
  }

  OneRank rank_{1000};
  TempDir folder_;
  Log log_{folder_ / "log", ""};
  Bootstrap boot_;
  AddressBook book_{[](int, const std::string&) {}};
  std::optional<LocalTier> tier_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ToLeader> sent_;
  size_t next_ = 0;
  std::optional<Boundary> boundary_;
};

TEST_F(BoundaryTest, TheSaveAtTheEndDoesNotWaitForAPartnerThatTakesNothing) {
  Clear(1, 1);
  Step(1);
  Await<Staged>();
  Say(agreement::Drain{1, rank_.dir.path()});
  Await<Record>();
  Say(Committed{1});
  Step(2);
  std::thread program([this] { EXPECT_TRUE(boundary_->Finish().ok()); });
  Await<Finalized>();
  Clear(2, 2);
  Await<Staged>();
  Say(Close{.finished = true});
  program.join();
  EXPECT_THAT(Said(), HasSubstr("no partner copy: the copy was given up"));
}

TEST_F(BoundaryTest, TheNextSnapshotDoesNotWaitForTheCopyOfOneThatDidNotBecomeDurable) {
  Clear(1, 1);
  Step(1);
  Await<Staged>();
  Say(Drop{.id = 1, .all_staged = true});
  Clear(2, 2);
  Step(2);
  Await<Staged>();
  EXPECT_THAT(Said(), HasSubstr("no partner copy: the copy was given up"));
}

TEST_F(BoundaryTest, SavesToMemoryWhileTheDiskHangsAndToDiskAsSoonAsItAnswers) {
  boot_.settings.boundary_wait = seconds(0);
  boot_.settings.dir = "/runs/mine";
  boundary_->Equip(rank_.MakeSaver(0), nullptr);
  const std::string last = rank_.dir / "last";
  ASSERT_TRUE(MakeDirectories(last).ok());
  disk.Hang();
  Clear(1, 1);
  Step(1);
  Await<Staged>();
  Say(agreement::Drain{1, rank_.dir.path()});
  ASSERT_TRUE(disk.AwaitVictim());
  Say(Drop{.id = 1, .all_staged = true});
  for (const int64_t step : {2, 3}) {
    const auto id = static_cast<SaveId>(step);
    Clear(id, step);
    Step(step);
    Await<Staged>();
    Say(agreement::Drain{id, rank_.dir / "none"});
    Say(Drop{.id = id, .all_staged = true});
  }
  Clear(4, 4);
  Step(4);
  Await<Staged>();
  EXPECT_THAT(Said(), Not(HasSubstr("answers again")));
  Say(agreement::Drain{4, last});
  disk.Answer();
  Await<Record>();
  const std::string said = Said();
  const size_t hangs = said.find("/runs/mine does not answer: what was saved of step 1 is still");
  EXPECT_NE(hangs, std::string::npos) << said;
  EXPECT_EQ(said.find("does not answer", hangs + 20), std::string::npos) << said;  // once
  EXPECT_THAT(said, HasSubstr("/runs/mine answers again"));
}

TEST_F(BoundaryTest, ADrainThatHangsHoldsUpNoOther) {
  boot_.settings.boundary_wait = seconds(0);
  boundary_->Equip(rank_.MakeSaver(0), nullptr);
  disk.HangOnce();
  Clear(1, 1);
  Step(1);
  Await<Staged>();
  Say(agreement::Drain{1, rank_.dir.path()});
  ASSERT_TRUE(disk.AwaitVictim());
  Say(Drop{.id = 1, .all_staged = true});
  for (const int64_t step : {2, 3}) {
    Clear(static_cast<SaveId>(step), step);
    Step(step);
    Await<Staged>();
    const std::string later = rank_.dir / ("later" + std::to_string(step));
    ASSERT_TRUE(MakeDirectories(later).ok());
    Say(agreement::Drain{static_cast<SaveId>(step), later});
    Await<Record>();
    Say(Committed{static_cast<SaveId>(step)});
  }
  EXPECT_THAT(Said(), Not(HasSubstr("answers again")));
  disk.Answer();
}

}  // namespace
}  // namespace cairn

extern "C" int fsync(int fd) {
  cairn::disk.Pass();
  return static_cast<int>(syscall(SYS_fsync, fd));
}
