#include "runtime/session/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <future>

#include "runtime/catalog/checkpoints.h"
#include "runtime/session/items.h"
#include "runtime/session/state.h"
#include "tests/runtime/control/world.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using agreement::ToLeader;
using agreement::ToMember;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr int kRanks = 3;
constexpr uint16_t kMark = 999;

// The leader of three ranks, of which the test says what they say. It hears what rank 0 is told, which is what all are.
class CoordinatorTest : public ::testing::Test {
 protected:
  struct Told {
    uint16_t type = 0;
    std::string payload;
  };

  CoordinatorTest() {
    boot_.settings.dir = tmp_ / "run";
    boot_.settings.save_timeout = seconds(60);
    boot_.world_size = kRanks;
    boot_.node = "n1";
    for (int rank = 1; rank < kRanks; ++rank)
      others_.push_back(std::make_unique<Member>(host_.OptionsFor(rank, kRanks, "n1")));
    loop_->Run([this] {
      FabricCallbacks callbacks;
      callbacks.on_ready = [this](const Status& status) { ready_.set_value(status); };
      callbacks.on_message = [this](int, uint16_t type, std::string payload) {
        Add({type, std::move(payload)});
      };
      callbacks.on_host = [this](uint16_t type, std::string payload) { Add({type, std::move(payload)}); };
      fabric_ =
          std::make_unique<Fabric>(loop_.get(), host_.OptionsFor(0, kRanks, "n1"), std::move(callbacks));
    });
    EXPECT_TRUE(ready_.get_future().get().ok());
  }
  ~CoordinatorTest() override {
    std::promise<void> closed;
    loop_->Run([&] { coordinator_->Close([&] { closed.set_value(); }); });
    closed.get_future().get();
    coordinator_->JoinClerk();
    loop_->Run([this] {
      coordinator_.reset();
      fabric_.reset();
    });
  }

  // A run that begins: opened, nothing to restore, and each rank has a blob, and a number of each of so many arrays.
  void Begin(int arrays = 0) {
    for (int rank = 0; rank < kRanks; ++rank) {
      Items items;
      EXPECT_TRUE(items.AddBlob("seed", &seed_, sizeof seed_, nullptr, CAIRN_BLOB_RESEED).ok());
      for (int a = 0; a < arrays; ++a) {
        cairn_piece piece{.offset = {rank}, .extent = {1}, .stride = {}, .data = &seed_};
        cairn_array array{};
        array.struct_size = sizeof array;
        array.dtype = CAIRN_U64;
        array.ndim = 1;
        array.shape[0] = kRanks;
        array.piece_count = 1;
        array.pieces = &piece;
        EXPECT_TRUE(items.AddArray("array" + std::to_string(a), array).ok());
      }
      mailbox_.Put({rank, Inventory::kType, EncodeSessionMessage(Inventory{.node = "n1"})});
      mailbox_.Put({rank, kShareMessage, EncodeShare(items)});
      mailbox_.Put({rank, Outcome::kType, EncodeSessionMessage(Outcome())});  // of its preparation for saves
    }
    loop_->Run([this] {
      Coordinator::Links links;
      links.loop = loop_.get();
      links.fabric = fabric_.get();
      links.log = &log_;
      links.mailbox = &mailbox_;
      links.trigger = [](Trigger, Nanoseconds, const std::string&) {};
      links.progress = [] { return agreement::Progress(); };
      coordinator_ = std::make_unique<Coordinator>(boot_, "main", links);
      coordinator_->LeadOpen();
      coordinator_->LeadRestore({});
    });
    AwaitOrder(Order::kProceed);
  }

  void Say(int rank, const ToLeader& message) {
    loop_->Run([&] { coordinator_->OnToLeader(rank, agreement::Encode(message)); });
  }
  void AllSay(const ToLeader& message) {
    for (int rank = 0; rank < kRanks; ++rank) Say(rank, message);
  }
  void Lose(int rank) {
    loop_->Run([&] { coordinator_->OnPeer(rank, PeerState::kGone, "killed"); });
  }
  void Signal(int rank) {
    loop_->Run([&] { coordinator_->OnSignal(rank, {SIGTERM, true}); });
  }

  // A save, of that many: all have staged, and write their files.
  void Drain(uint64_t id = 1) {
    const auto count = static_cast<int64_t>(10 * id);
    Say(0, agreement::Request{});
    Await<agreement::Poll>();
    AllSay(agreement::Count{id, count, milliseconds(1), agreement::Mode::kQuiet});
    Await<agreement::ArmAt>();
    AllSay(agreement::Ack{id});
    Await<agreement::Go>();
    AllSay(agreement::Staged{id, count, count, false});
    Await<agreement::Drain>();
  }
  static ToLeader Written() {
    return agreement::Record{1, EncodeSessionMessage(MemberRecord{.blobs = {{"seed", "12345678"}}})};
  }

  // The first that fits, from what was told last on.
  void AwaitOne(const std::function<bool(const Told&)>& fits) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kPatience, [&] {
      while (next_ < told_.size()) {
        if (fits(told_[next_++])) return true;
      }
      return false;
    }));
  }
  template <typename M>
  void Await() {
    AwaitOne([](const Told& told) {
      if (told.type != kToMemberMessage) return false;
      const auto message = agreement::DecodeToMember(told.payload);
      return message.ok() && std::holds_alternative<M>(*message);
    });
  }
  void AwaitOrder(Order::Kind kind) {
    AwaitOne([&](const Told& told) {
      if (told.type != Order::kType) return false;
      const auto order = DecodeSessionMessage<Order>(told.payload);
      return order.ok() && order->kind == kind;
    });
  }
  void AwaitLeave(LeaveOrder::Kind kind) {
    AwaitOne([&](const Told& told) {
      if (told.type != LeaveOrder::kType) return false;
      const auto order = DecodeSessionMessage<LeaveOrder>(told.payload);
      return order.ok() && order->kind == kind;
    });
  }
  // How often the host process was asked for the cause so far.
  long Questions() {
    loop_->Run([this] { EXPECT_TRUE(fabric_->SendToHost(kMark, "").ok()); });
    AwaitOne([](const Told& told) { return told.type == kMark; });
    const std::lock_guard lock(mutex_);
    return std::count_if(told_.begin(), told_.end(),
                         [](const Told& told) { return told.type == CauseQuery::kType; });
  }
  std::vector<int64_t> Checkpoints() const {
    std::vector<int64_t> steps;
    const auto listing = ListCheckpoints(*RunDirectory::OpenExisting(boot_.settings.dir));
    for (const Checkpoint& checkpoint : listing->checkpoints) steps.push_back(checkpoint.id.step);
    return steps;
  }

  TempDir tmp_;
  Log log_{tmp_ / "log", ""};
  Bootstrap boot_;
  uint64_t seed_ = 0;
  Host host_;
  std::vector<std::unique_ptr<Member>> others_;
  Mailbox mailbox_;
  std::promise<Status> ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Told> told_;
  size_t next_ = 0;
  std::unique_ptr<Loop> loop_ = std::move(*Loop::Start("leader"));
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Coordinator> coordinator_;

 private:
  void Add(Told told) {
    const std::lock_guard lock(mutex_);
    told_.push_back(std::move(told));
    changed_.notify_all();
  }
};

TEST_F(CoordinatorTest, ARequestThatIsRefusedLeavesTheSaveThatIsBeingWrittenAlone) {
  Begin();
  Drain();
  Say(2, Written());
  Lose(2);
  Say(1, agreement::Request{});  // refused: there can be no save after this one
  Say(1, Written());
  Say(0, Written());
  Await<agreement::Committed>();
  EXPECT_THAT(Checkpoints(), ElementsAre(10));
}

// All know what is saved, and where it lies, before the first save: none of them speaks of it.
TEST_F(CoordinatorTest, TellsTheLayoutOnceHoweverManySavesFollow) {
  constexpr uint64_t kArrays = 1000, kHeaderBytes = 20 * 4096;
  Begin(kArrays);
  for (const uint64_t id : {1, 2, 3}) {
    const size_t before = next_;
    Drain(id);
    size_t said_bytes = 0;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      MemberRecord record{.shards = {{rank + 1, kHeaderBytes + 8 * kArrays, {}}},
                          .blobs = {{"seed", "12345678"}}};
      const std::string bytes = EncodeSessionMessage(record);
      said_bytes += bytes.size();
      Say(static_cast<int>(rank), agreement::Record{id, bytes});
    }
    Await<agreement::Committed>();
    EXPECT_LT(said_bytes, 1000U);
    const std::lock_guard lock(mutex_);
    size_t told_bytes = 0;
    for (size_t i = before; i < told_.size(); ++i) told_bytes += told_[i].payload.size();
    EXPECT_LT(told_bytes, 2000U) << id;  // the layout has 1000 names
  }
  EXPECT_EQ(Checkpoints().front(), 30);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(std::count_if(told_.begin(), told_.end(),
                          [](const Told& told) {
                            if (told.type != Order::kType) return false;
                            const auto order = DecodeSessionMessage<Order>(told.payload);
                            return order.ok() && !order->state.empty();
                          }),
            1);
}

TEST_F(CoordinatorTest, TheNextLifeOfASupervisedJobFollowsTheSaveThatALossDoesNotHinder) {
  boot_.supervised = true;
  Begin();
  Drain();
  Say(2, Written());
  Lose(2);
  Say(1, Written());
  Say(0, Written());
  Await<agreement::Committed>();
  EXPECT_THAT(Checkpoints(), ElementsAre(10));
  AwaitLeave(LeaveOrder::kTerminate);
}

TEST_F(CoordinatorTest, TheNextLifeOfASupervisedJobFollowsALossAtOnceWhereNothingIsUnderWay) {
  boot_.supervised = true;
  Begin();
  Lose(2);
  AwaitLeave(LeaveOrder::kTerminate);
}

TEST_F(CoordinatorTest, SlurmIsAskedOnceForEachSignalHoweverManyRanksItReaches) {
  Begin();
  const long before = Questions();  // for the deadline
  const auto begin = std::chrono::steady_clock::now();
  for (int rank = 0; rank < kRanks; ++rank) Signal(rank);
  const long once = Questions();
  for (int rank = kRanks - 1; rank >= 0; --rank) Signal(rank);  // scancel, perhaps
  const long twice = Questions();
  if (std::chrono::steady_clock::now() - begin >= std::chrono::seconds(1))
    GTEST_SKIP() << "the machine stood still for so long that these were more signals";
  EXPECT_EQ(once, before + 1);
  EXPECT_EQ(twice, before + 2);
}

}  // namespace
}  // namespace cairn
