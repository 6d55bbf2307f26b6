#include "runtime/log/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace cairn {
namespace {

class LineWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    out_ = UniqueFd(ends[0]);
    in_ = UniqueFd(ends[1]);
    room_ = static_cast<size_t>(fcntl(in_.get(), F_SETPIPE_SZ, 4096));
  }

  // What has come, without waiting for more.
  std::string Come() {
    std::string text;
    pollfd entry{out_.get(), POLLIN, 0};
    while (poll(&entry, 1, 0) == 1) text += Next();
    return text;
  }

  std::string Next() {
    char bytes[4096];
    const ssize_t count = read(out_.get(), bytes, sizeof bytes);
    return {bytes, static_cast<size_t>(count > 0 ? count : 0)};
  }

  std::string Awaited(const std::string& last) {
    std::string text;
    while (!text.ends_with(last)) {
      const std::string next = Next();
      if (next.empty()) break;
      text += next;
    }
    return text;
  }

  void Fill() {
    ASSERT_EQ(write(in_.get(), std::string(room_, 'x').data(), room_), static_cast<ssize_t>(room_));
  }

  UniqueFd out_, in_;
  size_t room_ = 0;
};

TEST_F(LineWriterTest, HasWrittenALineWhenItReturns) {
  LineWriter writer(in_.get());
  writer.Write("one\n");
  EXPECT_EQ(Come(), "one\n");
  writer.Write("two\n");
  EXPECT_EQ(Come(), "two\n");
}

TEST_F(LineWriterTest, LeavesCallersAloneWhoseOutputStandsStillAndLosesNoLine) {
  Fill();
  LineWriter writer(in_.get());
  std::string all(room_, 'x');
  for (int i = 0; i < 500; ++i) {  // the first waits for its time; were it each of them, this took a minute
    all += "line " + std::to_string(i) + "\n";
    writer.Write("line " + std::to_string(i) + "\n");
  }
  EXPECT_EQ(Awaited("line 499\n"), all);
}

TEST_F(LineWriterTest, CountsTheLinesThatItLoses) {
  Fill();
  LineWriter writer(in_.get());
  for (int i = 0; i < 1100; ++i) writer.Write("line\n");
  std::string text = Awaited("line\n");
  while (text.size() < room_ + 1000 * 5) text += Awaited("line\n");
  EXPECT_EQ(text.size(), room_ + 1000 * 5);
  writer.Write("late\n");
  EXPECT_EQ(Awaited("late\n"), "cairn: 100 lines were lost here\nlate\n");
}

TEST_F(LineWriterTest, EndsThoughItsOutputStandsStill) {
  Fill();
  { LineWriter(std::move(in_)).Write("never read\n"); }
  SUCCEED();
}

TEST_F(LineWriterTest, WritesNothingInAForkedChild) {
  LineWriter writer(in_.get());
  const pid_t child = fork();
  if (child == 0) {
    writer.Write("the child's\n");
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Come(), "");
}

}  // namespace
}  // namespace cairn
