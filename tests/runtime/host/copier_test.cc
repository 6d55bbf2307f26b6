// The copier with a script in the place of `cairn`: when it is begun, what becomes of its answers, and how it is stopped.
#include "runtime/host/copier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/slurm/command.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::chrono::seconds kBound{60};

// On a loop of its own; what it says and tells is kept.
class TheCopier : public ::testing::Test {
 protected:
  TheCopier() : loop_(std::move(*Loop::Start("test"))) {}
  ~TheCopier() override {
    loop_->Run([this] { copier_.reset(); });
  }

  // `script`: of a shell, with this folder in $here and the arguments in "$*"; `answer CODE DOCUMENT` prints JSON and ends.
  void Start(const std::string& script, CopyRule copy = {"/archive/run7", {}}) {
    std::ofstream(temp_ / "cairn") << "#!/bin/sh\nhere=" << temp_ / ""
                                   << "\nanswer() { printf '%s\\n' \"$2\"; exit $1; }\n"
                                      "echo \"$*\" >> $here/calls\n"
                                   << script << "\n";
    std::filesystem::permissions(temp_ / "cairn", std::filesystem::perms::owner_all);
    CopierOptions options;
    options.program = temp_ / "cairn";
    options.environment = CommandEnvironment();
    options.dir = "/scratch/run7";
    options.copy = std::move(copy);
    options.keep = "last=2";
    options.first_pause = milliseconds(1);
    options.say = [this](const std::string& line) { lines_.push_back(line); };
    options.tell = [this](const CopyState& state) {
      const std::lock_guard lock(mutex_);
      if (state.under_way && !state_.under_way) begun_.push_back(std::chrono::steady_clock::now());
      state_ = state;
      changed_.notify_all();
    };
    loop_->Run([&] { copier_ = std::make_unique<Copier>(loop_.get(), std::move(options)); });
  }

  void Due(int64_t step) {
    loop_->Run([&] { copier_->Due(step); });
  }

  template <typename Condition>
  void Await(const char* what, Condition condition) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kBound, [&] { return condition(state_); })) << what;
  }
  void AwaitCopyOf(int64_t step) {
    Await("a copy", [&](const CopyState& s) { return s.step == step && !s.under_way; });
  }

  std::vector<std::string> Calls() const {
    std::vector<std::string> calls;
    std::ifstream in(temp_ / "calls");
    for (std::string line; std::getline(in, line);) calls.push_back(line);
    return calls;
  }
  void Write(const std::string& name) const { std::ofstream(temp_ / name).put('\n'); }
  // Of the loop's thread.
  std::vector<std::string> Lines() {
    std::vector<std::string> out;
    loop_->Run([&] { out = lines_; });
    return out;
  }
  std::string LastWord() {
    std::string out;
    loop_->Run([&] { out = copier_->LastWord(); });
    return out;
  }

  TempDir temp_;
  const std::unique_ptr<Loop> loop_;
  std::unique_ptr<Copier> copier_;  // loop thread only
  std::vector<std::string> lines_;  // loop thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  CopyState state_;
  std::vector<std::chrono::steady_clock::time_point> begun_;
};

constexpr const char* kCopied =
    R"(answer 0 '{"checkpoints": [{"step": '$(cat $here/step)', "bytes": 4000}]}')";

TEST_F(TheCopier, HasTheNewestCheckpointPushed) {
  std::ofstream(temp_ / "step") << 100;
  Start(kCopied, {"s3://lab/run7", std::chrono::hours(6)});
  EXPECT_EQ(LastWord(), "");
  Due(100);
  AwaitCopyOf(100);
  EXPECT_THAT(
      Calls(),
      ElementsAre("push --json --gently --every=21600000ms --keep=last=2 /scratch/run7 s3://lab/run7"));
  EXPECT_EQ(state_.bytes, 4000U);
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_EQ(LastWord(), "");
  Due(200);  // in six hours
  EXPECT_THAT(Calls(), SizeIs(1));
  EXPECT_EQ(LastWord(), "s3://lab/run7 has no copy of step 200 yet. `cairn push /scratch/run7` makes one");
}

TEST_F(TheCopier, MakesOneAtATimeAndOneMoreForAllThatWereSavedMeanwhile) {
  Start(std::string("while [ ! -e $here/go ]; do sleep 0.01; done\n"
                    "case $(wc -l < $here/calls) in 1) echo 100 ;; *) echo 300 ;; esac > $here/step\n") +
        kCopied);
  for (int64_t step : {100, 200, 300}) Due(step);
  Await("the first", [](const CopyState& s) { return s.under_way == 100; });
  Write("go");
  AwaitCopyOf(300);
  EXPECT_THAT(Calls(), SizeIs(2));
}

TEST_F(TheCopier, WaitsAsLongAsPushSaysThatItIsTooEarly) {
  std::ofstream(temp_ / "step") << 200;
  Start(
      std::string(
          R"(if [ $(wc -l < $here/calls) = 1 ]; then answer 0 '{"checkpoints": [], "too_early_ns": 50000000}'; fi
)") + kCopied,
      {"/archive/run7", std::chrono::hours(6)});
  Due(100);
  Due(200);
  AwaitCopyOf(200);
  EXPECT_THAT(Calls(), SizeIs(2));
  const std::lock_guard lock(mutex_);
  ASSERT_THAT(begun_, SizeIs(2));
  EXPECT_GE(begun_[1] - begun_[0], milliseconds(50));
}

TEST_F(TheCopier, GoesOnToTheNextWhereOneWasPrunedMeanwhile) {
  std::ofstream(temp_ / "step") << 200;
  Start(std::string(R"(
    if [ $(wc -l < $here/calls) = 1 ]; then
      answer 1 '{"checkpoints": [], "passed_over": [{"code": "not found", "message": "it is gone"}]}'
    fi
)") + kCopied,
        {"/archive/run7", std::chrono::hours(6)});
  Due(100);
  Due(200);
  AwaitCopyOf(200);
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(TheCopier, TriesAgainWhereItFailsAndSaysEachKindOnce) {
  std::ofstream(temp_ / "step") << 100;
  Start(std::string(R"(
    case $(wc -l < $here/calls) in
      1|2) answer 1 '{"checkpoints": [], "error": {"code": "no space", "message": "the archive is full"}}' ;;
      3) echo 'cairn: it burns' >&2; exit 7 ;;
      4) answer 1 '{"checkpoints": [], "passed_over": [{"code": "damage", "message": "block 3 is bad"}]}' ;;
    esac
)") + kCopied);
  Due(100);
  AwaitCopyOf(100);
  EXPECT_THAT(Calls(), SizeIs(5));
  EXPECT_THAT(Lines(), ElementsAre("no copy of step 100 in /archive/run7: the archive is full. The job goes "
                                   "on, and the copy is tried again",
                                   HasSubstr("cairn push ended with exit status 7: cairn: it burns"),
                                   HasSubstr("block 3 is bad")));
  EXPECT_EQ(state_.failure, "");
}

TEST_F(TheCopier, TellsAFailureUntilItIsMadeUpFor) {
  Start(R"(answer 1 '{"error": {"code": "mismatch", "message": "another run"}}')");
  Due(100);
  Await("the failure", [](const CopyState& s) { return s.failure == "another run"; });
}

TEST_F(TheCopier, WhichCannotEvenBeStartedSaysSo) {
  Start("");
  std::filesystem::remove(temp_ / "cairn");
  Due(100);
  Await("the failure", [](const CopyState& s) { return !s.failure.empty(); });
  EXPECT_THAT(Lines(), SizeIs(1));
}

TEST_F(TheCopier, StopsWhatIsUnderWayInGoodOrderAndBeginsNothingMore) {
  Start("trap 'touch $here/stopped; exit 1' TERM; touch $here/began; while :; do sleep 0.01; done");
  Due(100);
  const auto has = [&](const char* name) {
    const auto bound = std::chrono::steady_clock::now() + kBound;
    while (!std::filesystem::exists(temp_ / name) && std::chrono::steady_clock::now() < bound)
      std::this_thread::sleep_for(milliseconds(1));
    return std::filesystem::exists(temp_ / name);
  };
  ASSERT_TRUE(has("began"));
  loop_->Run([&] { copier_->Stop(); });
  ASSERT_TRUE(has("stopped"));
  Await("its end", [](const CopyState& s) { return !s.under_way; });
  Due(200);
  Await("nothing", [](const CopyState& s) { return !s.under_way; });
  EXPECT_EQ(LastWord(), "/archive/run7 has no copy of step 200 yet. `cairn push /scratch/run7` makes one");
  loop_->Run([&] { copier_.reset(); });
  EXPECT_THAT(Calls(), SizeIs(1));
  EXPECT_THAT(Lines(), IsEmpty());
}

}  // namespace
}  // namespace cairn
