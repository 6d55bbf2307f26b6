#include "runtime/control/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <set>
#include <string>
#include <vector>

#include "runtime/control/socket.h"
#include "runtime/io/fd.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<Loop> Started() { return std::move(*Loop::Start("test-loop")); }

TEST(Loop, RunsWhatIsPostedInOrderOnItsOwnThread) {
  auto loop = Started();
  std::vector<int> order;
  bool on_loop = false;
  for (int i = 0; i < 100; ++i) loop->Post([&, i] { order.push_back(i); });
  loop->Run([&] { on_loop = loop->OnLoopThread(); });
  EXPECT_TRUE(on_loop);
  EXPECT_FALSE(loop->OnLoopThread());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Loop, RunsWhatWasPostedBeforeItEnds) {
  int ran = 0;
  {
    auto loop = Started();
    loop->Post([&] {
      ++ran;
      loop->Post([&] { ++ran; });
    });
  }
  EXPECT_EQ(ran, 2);
}

TEST(Loop, BlocksAllSignalsInItsThread) {
  auto loop = Started();
  sigset_t mask;
  loop->Run([&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGCONT})
    EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

TEST(Timer, FiresOnceOrAgainAndNotAfterItsDestruction) {
  auto loop = Started();
  std::promise<void> thrice;
  int once = 0, again = 0, never = 0;
  std::unique_ptr<Timer> a, b, c;
  loop->Run([&] {
    a = std::make_unique<Timer>(loop.get(), [&] { ++once; });
    a->Once(milliseconds(1));
    c = std::make_unique<Timer>(loop.get(), [&] { ++never; });
    c->Once(milliseconds(1));
    c.reset();
    b = std::make_unique<Timer>(loop.get(), [&] {
      if (++again == 3) {
        b.reset();  // from within its own callback
        thrice.set_value();
      }
    });
    b->Every(milliseconds(2));
  });
  thrice.get_future().get();
  loop->Run([&] { a.reset(); });
  EXPECT_EQ(once, 1);
  EXPECT_EQ(again, 3);
  EXPECT_EQ(never, 0);
}

TEST(FdWatcher, TellsWhenADescriptorBecomesReadable) {
  auto loop = Started();
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::promise<uint64_t> seen;
  std::unique_ptr<FdWatcher> watcher;
  loop->Run([&] {
    watcher = std::make_unique<FdWatcher>(loop.get(), fd, [&](bool readable, bool) {
      uint64_t value = 0;
      if (readable && read(fd, &value, sizeof(value)) == sizeof(value)) seen.set_value(value);
    });
    watcher->Watch(true, false);
  });
  const uint64_t five = 5;
  ASSERT_EQ(write(fd, &five, sizeof(five)), static_cast<ssize_t>(sizeof(five)));
  EXPECT_EQ(seen.get_future().get(), 5u);
  loop->Run([&] { watcher.reset(); });
  close(fd);
}

std::set<int> Descriptors() {
  std::set<int> out;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) out.insert(fd);
  }
  return out;
}

TEST(ForkGuard, LeavesAForkedChildInertAndWithoutOurDescriptors) {
  Started();  // libuv keeps one pipe for the process, which it renews in a child by itself
  const std::set<int> before = Descriptors();
  auto loop = Started();
  Socket listener = std::move(*ListenTcp("127.0.0.1", 0, 0));
  ASSERT_GT(Descriptors().size(), before.size());
  const pid_t pid = fork();
  if (pid == 0) {
    bool ran = false;
    loop->Run([&] { ran = true; });
    loop->Post([&] { ran = true; });
    loop.reset();
    _exit(!ran && Descriptors() == before ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  bool alive = false;
  loop->Run([&] { alive = true; });
  EXPECT_TRUE(alive);
}

TEST(ForkGuard, ClosesFilesInAForkedChildAndLeavesTheirNumbersToIt) {
  UniqueFd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  const pid_t pid = fork();
  if (pid == 0) {
    const bool closed = fcntl(file.get(), F_GETFD) < 0;
    const int its_own = open("/dev/null", O_RDONLY);  // the lowest number that is free
    const int number = file.get();
    { const UniqueFd gone(std::move(file)); }
    _exit(closed && its_own == number && fcntl(its_own, F_GETFD) >= 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_GE(fcntl(file.get(), F_GETFD), 0);
}

#ifndef CAIRN_SANITIZED  // whose shadow memory is beyond any limit
TEST(Loop, IsNotStartedWhereNoThreadIsToBeHadAndLeavesTheSignalsAlone) {
  const pid_t pid = fork();
  if (pid == 0) {
    const rlimit none{1, 1};  // for the thread's stack, too
    setrlimit(RLIMIT_AS, &none);
    std::vector<Result<std::unique_ptr<Loop>>>
        loops;  // the first may get the stacks of threads that have ended
    do loops.push_back(Loop::Start("test-loop"));
    while (loops.back().ok() && loops.size() < 100);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    _exit(!loops.back().ok() && sigismember(&blocked, SIGTERM) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}
#endif

TEST(ForkGuard, MarksEveryDescriptorCloseOnExec) {
  const std::set<int> before = Descriptors();
  auto loop = Started();
  for (const int fd : Descriptors()) {
    if (before.contains(fd)) continue;
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
  }
}

TEST(FdWatcher, IsSilentWhereThereIsNothingToWatch) {
  const auto loop = std::move(*Loop::Start("test"));
  loop->Run([&] {
    FdWatcher watcher(loop.get(), -1, [](bool, bool) { ADD_FAILURE(); });
    watcher.Watch(true, false);
    watcher.Watch(false, false);
  });
}

TEST(Address, ParsesWhatCanBeConnectedTo) {
  EXPECT_TRUE(Address::Parse("10.0.0.7:4711").ok());
  EXPECT_TRUE(Address::Parse("[::1]:4711").ok());
  EXPECT_TRUE(Address::Parse("@name")->is_unix());
  for (const char* text :
       {"", "10.0.0.7", "10.0.0.7:", "10.0.0.7:x", "10.0.0.7:70000", "nohost:1", "::1:4711"}) {
    EXPECT_EQ(Address::Parse(text).status().code(), Code::kInvalid) << text;
  }
}

TEST(ReachableAddresses, PutsLoopbackLast) {
  const auto addresses = ReachableAddresses(7, "");
  ASSERT_FALSE(addresses.empty());
  bool loopback = false;
  for (const std::string& a : addresses) {
    const bool is_loopback = a.starts_with("127.") || a == "[::1]:7";
    EXPECT_FALSE(loopback && !is_loopback) << a;
    loopback = loopback || is_loopback;
    EXPECT_TRUE(a.ends_with(":7")) << a;
  }
  EXPECT_EQ(ReachableAddresses(7, "lo").front(), "127.0.0.1:7");
}

}  // namespace
}  // namespace cairn
