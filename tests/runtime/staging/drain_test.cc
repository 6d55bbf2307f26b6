#include "runtime/staging/drain.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/io/file.h"
#include "runtime/io/pwrite_engine.h"
#include "tests/runtime/staging/ranks.h"
#include "tests/support/memory_store.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A staged slot of images with these sizes, filled with pseudo-random bytes.
struct Staged {
  explicit Staged(const std::vector<uint64_t>& sizes) {
    uint32_t number = 1;
    for (const uint64_t size : sizes) {
      plan.images.push_back({.number = number++, .header = std::string(8, 'h'), .size_bytes = size});
      plan.bytes += size;
    }
    const auto tier = LocalTier::Open({.setting = "none"});
    auto made = MemorySlot::Make(*tier, plan, 0, TakeAll());
    EXPECT_TRUE(made.ok()) << made.status().message();
    slot = *std::move(made);
    Random random(5);
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (uint64_t at = 8; at + 8 <= sizes[i]; at += 8) {
        const uint64_t value = random();
        std::memcpy(slot->image(i) + at, &value, 8);
      }
    }
    slot->sidecar().Begin({.epoch = 1});
    slot->sidecar().MarkStaged();
  }
  std::string Content(size_t i) const {
    return {reinterpret_cast<const char*>(slot->image(i)), plan.images[i].size_bytes};
  }

  ImagePlan plan;
  std::unique_ptr<MemorySlot> slot;
};

std::vector<std::string> Names(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

constexpr uint64_t kMiB = 1 << 20;

// Checks shards and sums in `folder`, of either tier.
void CheckDrained(const Staged& staged, const std::vector<ShardRecord>& records, const std::string& folder) {
  ASSERT_EQ(records.size(), staged.plan.images.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string content = staged.Content(i);
    const auto number = static_cast<uint32_t>(i + 1);
    ASSERT_EQ(*ReadAll(folder + "/" + names::Shard(number), 1 << 30), content);
    const auto sums = DecodeSums(*ReadAll(folder + "/" + names::Sums(number), 1 << 20));
    ASSERT_TRUE(sums.ok()) << sums.status().message();
    // The sums, by xxHash itself.
    size_t block = 0;
    for (size_t at = 0; at < content.size(); at += 4 * kMiB, ++block) {
      XXH128_canonical_t expected;
      XXH128_canonicalFromHash(
          &expected, XXH3_128bits(content.data() + at, std::min<size_t>(4 * kMiB, content.size() - at)));
      ASSERT_LT(block, sums->blocks.size());
      EXPECT_EQ(std::memcmp(sums->blocks[block].bytes.data(), expected.digest, 16), 0);
    }
    EXPECT_EQ(block, sums->blocks.size());
    EXPECT_EQ(records[i], (ShardRecord{number, content.size(), sums->Root()}));
  }
}

TEST(Drain, WritesEachImageAsItIsWithTheSumsOfItsBlocks) {
  for (const auto& [direct, writer] : {std::pair{true, Writer::kAuto}, std::pair{false, Writer::kAuto},
                                       std::pair{true, Writer::kPwrite}, std::pair{false, Writer::kPwrite}}) {
    TempDir dir;
    Staged staged({9 * kMiB + 123, 4 * kMiB, 100});
    DrainControl control;
    const auto records = Drain(*staged.slot, staged.plan,
                               {.directory = dir.path(),
                                .direct = direct,
                                .make_engine = [w = writer] { return MakeWriteEngine(w); }},
                               control);
    ASSERT_TRUE(records.ok()) << records.status().message();
    CheckDrained(staged, *records, dir.path());
    EXPECT_EQ(control.bytes_written(), 13 * kMiB + 223);
    EXPECT_EQ(staged.slot->sidecar().state(), SlotState::kHashed);
  }
}

TEST(Drain, GivesItsFilesTheModeAskedFor) {
  TempDir dir;
  Staged staged({100});
  DrainControl control;
  ASSERT_TRUE(Drain(*staged.slot, staged.plan, {.directory = dir.path(), .mode = 0604}, control).ok());
  for (const std::string& name : Names(dir.path())) {
    struct stat st;
    ASSERT_EQ(stat((dir.path() + "/" + name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0604u) << name;
  }
}

TEST(Drain, OverwritesNothingAndRemovesOnlyItsOwnFiles) {
  TempDir dir;
  Staged staged({100, 100});
  const std::string theirs = dir.path() + "/" + names::Shard(2);
  { std::ofstream(theirs) << "theirs"; }
  DrainControl control;
  const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, control);
  EXPECT_EQ(records.status().code(), Code::kExists);
  EXPECT_THAT(records.status().message(), HasSubstr(theirs));
  EXPECT_EQ(Names(dir.path()), std::vector<std::string>{names::Shard(2)});
  EXPECT_EQ(ReadWholeFile(theirs), "theirs");
  EXPECT_EQ(staged.slot->sidecar().state(), SlotState::kStaged);
}

TEST(Drain, LeavesNothingWhenItIsCancelled) {
  TempDir dir;
  Staged staged({100});
  DrainControl control;
  control.Cancel();
  const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, control);
  EXPECT_EQ(records.status().code(), Code::kCancelled);
  EXPECT_TRUE(Names(dir.path()).empty());
}

TEST(Drain, SaysWhereAFullFileSystemStoppedItAndLeavesNothing) {
  TempDir dir;
  if (mount("cairn", dir.path().c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "needs root, to mount a small tmpfs";
  {
    Staged staged({5 * kMiB, 5 * kMiB});
    DrainControl control;
    const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, control);
    EXPECT_EQ(records.status().code(), Code::kNoSpace);
    EXPECT_THAT(records.status().message(), HasSubstr("after 0 of 10485760 bytes"));
    EXPECT_THAT(records.status().message(), HasSubstr(names::Shard(2)));
    EXPECT_TRUE(Names(dir.path()).empty());
    // The next save, once there is room, is none the worse for it.
    Staged smaller({kMiB});
    DrainControl again;
    EXPECT_TRUE(Drain(*smaller.slot, smaller.plan, {.directory = dir.path()}, again).ok());
  }
  umount2(dir.path().c_str(), MNT_DETACH);
}

// An engine that writes at once and lets a test look at each block, and change what becomes of it.
class WatchedEngine : public WriteEngine {
 public:
  using Watch = std::function<int(const BlockWrite& block)>;  // an errno, or 0
  WatchedEngine(int depth, Watch watch)
      : depth_(depth), watch_(std::move(watch)), real_(MakePwriteEngine(0)) {}
  std::string_view name() const override { return "watched"; }
  int depth() const override { return depth_; }
  int in_flight() const override { return static_cast<int>(done_.size()); }
  void Submit(const BlockWrite& block) override {
    if (const int error = watch_(block); error != 0) return done_.push_back({block.tag, error});
    real_->Submit(block);
    done_.push_back(real_->Wait());
  }
  BlockDone Wait() override {  // the newest first
    const BlockDone done = done_.back();
    done_.pop_back();
    return done;
  }
  std::optional<BlockDone> Poll() override { return std::nullopt; }

 private:
  const int depth_;
  const Watch watch_;
  const std::unique_ptr<WriteEngine> real_;
  std::vector<BlockDone> done_;
};

DrainOptions Watched(const TempDir& dir, WatchedEngine::Watch watch, int depth = 3) {
  return {.directory = dir.path(),
          .make_engine = [=] { return std::make_unique<WatchedEngine>(depth, watch); }};
}

void ExpectImages(const TempDir& dir, const Staged& staged) {
  for (size_t i = 0; i < staged.plan.images.size(); ++i)
    EXPECT_EQ(ReadWholeFile(dir.path() + "/" + names::Shard(staged.plan.images[i].number)),
              staged.Content(i));
}

TEST(Drain, WritesThroughThePageCacheWhatTheFileSystemDoesNotTakePastIt) {
  TempDir dir;
  Staged staged({9 * kMiB + 123, kMiB});
  DrainControl control;
  const auto watch = [&](const BlockWrite& block) {
    return (fcntl(block.fd, F_GETFL) & O_DIRECT) != 0 ? EINVAL : 0;
  };
  ASSERT_TRUE(Drain(*staged.slot, staged.plan, Watched(dir, watch), control).ok());
  ExpectImages(dir, staged);
  EXPECT_EQ(control.bytes_written(), 10 * kMiB + 123);
  EXPECT_EQ(control.writer(), "watched");
}

TEST(Drain, SaysWhichBlockFailedAndSubmitsNoMore) {
  TempDir dir;
  Staged staged({20 * kMiB});
  DrainControl control;
  int blocks = 0;
  const auto records = Drain(*staged.slot, staged.plan,
                             Watched(
                                 dir, [&](const BlockWrite&) { return ++blocks == 2 ? EIO : 0; }, 2),
                             control);
  EXPECT_EQ(records.status().code(), Code::kIo);
  EXPECT_THAT(records.status().message(), AllOf(HasSubstr("after 4194304 of 20971520 bytes"),
                                                HasSubstr(names::Shard(1) + " at 4194304")));
  EXPECT_EQ(blocks, 2);
  EXPECT_TRUE(Names(dir.path()).empty());
}

TEST(Drain, StopsAtTheNextBlockWhenItIsCancelled) {
  TempDir dir;
  Staged staged({40 * kMiB});
  DrainControl control;
  int blocks = 0;
  const auto records = Drain(*staged.slot, staged.plan,
                             Watched(dir,
                                     [&](const BlockWrite&) {
                                       if (++blocks == 3) control.Cancel();
                                       return 0;
                                     }),
                             control);
  EXPECT_EQ(records.status().code(), Code::kCancelled);
  EXPECT_EQ(blocks, 3);
  EXPECT_TRUE(Names(dir.path()).empty());
}

// With these limits the second block would come after seven weeks.
constexpr uint64_t kOneBytePerSecond = 1;

TEST(Drain, IsCancelledWhileItWaitsForItsTurn) {
  TempDir dir;
  Staged staged({9 * kMiB});
  DrainControl control;
  std::atomic<int> blocks = 0;
  DrainOptions options = Watched(dir, [&](const BlockWrite&) {
    ++blocks;
    return 0;
  });
  options.bytes_per_second = kOneBytePerSecond;
  std::thread canceller([&] {
    while (control.bytes_written() == 0) std::this_thread::yield();
    control.Cancel();
  });
  EXPECT_EQ(Drain(*staged.slot, staged.plan, options, control).status().code(), Code::kCancelled);
  canceller.join();
  EXPECT_EQ(blocks, 1);
  EXPECT_EQ(control.bytes_written(), 4 * kMiB);
}

int Niceness() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(Drain, GivesWayToTheProgramUntilItIsHurried) {
  TempDir dir;
  Staged staged({9 * kMiB, 4 * kMiB});
  DrainControl control;
  std::vector<int> niceness;
  std::atomic<int> blocks = 0;
  DrainOptions options = Watched(dir, [&](const BlockWrite&) {
    niceness.push_back(Niceness());
    ++blocks;
    return 0;
  });
  options.bytes_per_second = kOneBytePerSecond;
  std::thread hurrier([&] {
    while (blocks == 0) std::this_thread::yield();
    control.Hurry();
  });
  const int own = Niceness();
  ASSERT_TRUE(Drain(*staged.slot, staged.plan, options, control).ok());
  hurrier.join();
  ExpectImages(dir, staged);
  EXPECT_EQ(niceness, (std::vector<int>{std::min(own + 10, 19), own, own, own}));
}

TEST(Drain, WritesAtLowPriority) {
  TempDir dir;
  Staged staged({9 * kMiB});
  DrainControl control;
  std::vector<int> niceness;
  const int own = Niceness();
  ASSERT_TRUE(Drain(*staged.slot, staged.plan,
                    Watched(dir,
                            [&](const BlockWrite&) {
                              niceness.push_back(Niceness());
                              return 0;
                            }),
                    control)
                  .ok());
  EXPECT_EQ(niceness, std::vector<int>(3, std::min(own + 10, 19)));
  EXPECT_EQ(control.held_back().count(), 0);
  EXPECT_EQ(Niceness(), own);
}

TEST(Drain, IsAtFullSpeedFromTheBeginningWhenItIsHurriedBefore) {
  TempDir dir;
  Staged staged({9 * kMiB});
  DrainControl control;
  control.Hurry();
  std::vector<int> niceness;
  DrainOptions options = Watched(dir, [&](const BlockWrite&) {
    niceness.push_back(Niceness());
    return 0;
  });
  options.bytes_per_second = kOneBytePerSecond;
  ASSERT_TRUE(Drain(*staged.slot, staged.plan, options, control).ok());
  EXPECT_EQ(niceness, std::vector<int>(3, Niceness()));
}

TEST(Drain, ReportsAFolderThatItMayNotWriteTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    Staged staged({100});
    DrainControl control;
    const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, control);
    _exit(records.status().code() == Code::kPermission ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

constexpr char kAttempt[] = "s3://bucket/run/step-1";

// Parts that end where blocks end, inside a block, and after several.
TEST(DrainToABucket, MakesObjectsOfTheSameBytesAsFiles) {
  for (const uint64_t part_bytes : {4 * kMiB, 5 * kMiB + 1, 300 * kMiB}) {
    const auto store = std::make_shared<MemoryStore>(part_bytes);
    const StoreInUse in_use(store);
    Staged staged({9 * kMiB + 123, 4 * kMiB, 100});
    DrainControl control;
    const auto records = Drain(*staged.slot, staged.plan, {.directory = kAttempt}, control);
    ASSERT_TRUE(records.ok()) << records.status().message();
    CheckDrained(staged, *records, kAttempt);
    EXPECT_EQ(store->objects().size(), 6u);
    EXPECT_TRUE(store->uploads().empty());
    EXPECT_EQ(control.bytes_written(), 13 * kMiB + 223);
    EXPECT_EQ(staged.slot->sidecar().state(), SlotState::kHashed);
  }
}

TEST(DrainToABucket, LeavesNothingAfterAFaultAtAnyCall) {
  for (const auto fate : {FaultyStore::Fate::kFail, FaultyStore::Fate::kLoseAnswer}) {
    for (const std::string call : {"Upload", "Send", "Finish", "Put"}) {
      const auto memory = std::make_shared<MemoryStore>(kMiB);
      std::atomic_int calls = 0;  // from several threads
      const StoreInUse in_use(
          std::make_shared<FaultyStore>(memory, [&](std::string_view name, const std::string&) {
            return name == call && ++calls == 2 ? fate : FaultyStore::Fate::kPass;
          }));
      Staged staged({3 * kMiB, 2 * kMiB});
      DrainControl control;
      const auto records = Drain(*staged.slot, staged.plan, {.directory = kAttempt}, control);
      EXPECT_EQ(records.status().code(), Code::kUnavailable) << call;
      EXPECT_TRUE(memory->objects().empty()) << call;
      EXPECT_TRUE(memory->uploads().empty()) << call;
      EXPECT_EQ(staged.slot->sidecar().state(), SlotState::kStaged);
    }
  }
}

TEST(DrainToABucket, EndsAtTheNextPartWhenItIsCancelledAndLeavesNothing) {
  const auto memory = std::make_shared<MemoryStore>(kMiB);
  DrainControl control;
  std::atomic_int sent = 0;
  const StoreInUse in_use(
      std::make_shared<FaultyStore>(memory, [&](std::string_view name, const std::string&) {
        if (name == "Send" && ++sent == 2) control.Cancel();
        return FaultyStore::Fate::kPass;
      }));
  Staged staged({9 * kMiB});
  const auto records = Drain(*staged.slot, staged.plan, {.directory = kAttempt}, control);
  EXPECT_EQ(records.status().code(), Code::kCancelled);
  EXPECT_EQ(sent, 2);
  EXPECT_TRUE(memory->objects().empty());
  EXPECT_TRUE(memory->uploads().empty());
}

// A server that does not answer holds the call until somebody cancels.
TEST(DrainToABucket, CancelReachesARequestThatIsUnderWay) {
  for (const std::string call : {"Send", "Finish"}) {
    const auto memory = std::make_shared<MemoryStore>(kMiB);
    DrainControl control;
    std::promise<void> begun, cancelled;
    bool held = false;
    const StoreInUse in_use(
        std::make_shared<FaultyStore>(memory, [&](std::string_view name, const std::string&) {
          if (name == "Cancel") cancelled.set_value();
          if (name == call && !std::exchange(held, true)) {
            begun.set_value();
            EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
          }
          return FaultyStore::Fate::kPass;
        }));
    Staged staged({3 * kMiB});
    std::thread canceller([&] {
      begun.get_future().wait();
      control.Cancel();
    });
    const auto records = Drain(*staged.slot, staged.plan, {.directory = kAttempt}, control);
    canceller.join();
    EXPECT_EQ(records.status().code(), Code::kCancelled) << call;
    EXPECT_TRUE(memory->objects().empty()) << call;
  }
}

TEST(DrainToABucket, AsksAStoreThatIsAwayForNothingMoreThanOneRemoval) {
  const auto memory = std::make_shared<MemoryStore>(kMiB);
  bool away = false;
  int asked = 0;
  std::set<std::string> cancelled;
  std::mutex mutex;
  const StoreInUse in_use(
      std::make_shared<FaultyStore>(memory, [&](std::string_view name, const std::string& key) {
        const std::lock_guard lock(mutex);
        if (name == "Cancel") {
          cancelled.insert(key);
          return FaultyStore::Fate::kPass;
        }
        if (name == "Remove") ++asked;
        away = away || name == "Finish";
        return away ? FaultyStore::Fate::kFail : FaultyStore::Fate::kPass;
      }));
  Staged staged({3 * kMiB, 2 * kMiB});
  DrainControl control;
  EXPECT_EQ(Drain(*staged.slot, staged.plan, {.directory = kAttempt}, control).status().code(),
            Code::kUnavailable);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(cancelled.size(), 2u);
}

// At this limit it would take longer than any test may.
TEST(DrainToABucket, KeepsToTheLimitUntilItIsHurried) {
  std::chrono::nanoseconds held_back(0);
  for (int tries = 0; held_back.count() == 0 && tries < 100;
       ++tries) {  // until the hurry comes while it waits
    const auto memory = std::make_shared<MemoryStore>(kMiB);
    DrainControl control;
    std::atomic_int sent = 0;
    const StoreInUse in_use(
        std::make_shared<FaultyStore>(memory, [&](std::string_view name, const std::string&) {
          if (name == "Send") ++sent;
          return FaultyStore::Fate::kPass;
        }));
    Staged staged({9 * kMiB});
    std::thread drain([&] {
      EXPECT_TRUE(
          Drain(*staged.slot, staged.plan, {.directory = kAttempt, .bytes_per_second = 100}, control).ok());
    });
    while (control.bytes_written() < kMiB) std::this_thread::yield();
    EXPECT_EQ(control.bytes_written(), kMiB);  // the first was free
    control.Hurry();
    drain.join();
    EXPECT_EQ(sent, 9);
    held_back = control.held_back();
  }
  EXPECT_GT(held_back.count(), 0);
}

}  // namespace
}  // namespace cairn
