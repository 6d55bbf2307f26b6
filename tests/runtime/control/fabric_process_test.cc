// Members that are processes: what SIGKILL, SIGSTOP and a forked worker look like to the others.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/runtime/control/world.h"

namespace cairn {
namespace {

// Rank 1 of 2 on another node; answers each message with its text, or with its worker's pid. Started before this process has any thread.
class Process {
 public:
  // fork_worker: at each message the process forks a child that outlives it.
  explicit Process(bool fork_worker) {
    int pipe_fds[2];
    EXPECT_EQ(pipe(pipe_fds), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(pipe_fds[1]);
      FabricOptions options;
      options.rank = 1;
      options.world_size = 2;
      options.node = "n2";
      options.key = "12.0.1";
      options.heartbeat = std::chrono::milliseconds(50);
      Take(pipe_fds[0], options.token.bytes.data(), options.token.bytes.size());
      uint16_t port = 0;
      Take(pipe_fds[0], &port, sizeof(port));
      options.rendezvous = "127.0.0.1:" + std::to_string(port);
      Serve(std::move(options), fork_worker);
    }
    close(pipe_fds[0]);
    write_fd_ = pipe_fds[1];
  }
  ~Process() {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(write_fd_);
  }

  void Meet(const Host& host) {
    ASSERT_EQ(write(write_fd_, host.token.bytes.data(), 32), 32);
    ASSERT_EQ(write(write_fd_, &host.port, 2), 2);
  }
  void Signal(int signal) { kill(pid_, signal); }

 private:
  static void Take(int fd, void* out, size_t size) {
    if (read(fd, out, size) != static_cast<ssize_t>(size)) _exit(1);
  }

  [[noreturn]] static void Serve(FabricOptions options, bool fork_worker) {
    auto loop = std::move(*Loop::Start("process"));
    std::unique_ptr<Fabric> fabric;
    FabricCallbacks callbacks;
    callbacks.on_ready = [](Status s) {
      if (!s.ok()) _exit(1);
    };
    callbacks.on_message = [&](int, uint16_t type, std::string text) {
      if (fork_worker) {
        const pid_t worker = fork();
        if (worker == 0) {
          alarm(60);  // whatever becomes of the test
          pause();
        }
        text = std::to_string(worker);
      }
      if (!fabric->SendToLeader(type, text).ok()) _exit(1);
    };
    loop->Run(
        [&] { fabric = std::make_unique<Fabric>(loop.get(), std::move(options), std::move(callbacks)); });
    for (;;) pause();
  }

  pid_t pid_ = -1;
  int write_fd_ = -1;
};

TEST(FabricProcess, IsGoneOnceKilled) {
  Process process(false);
  Host host;
  process.Meet(host);
  Member zero(host.OptionsFor(0, 2, "n1"));
  ASSERT_TRUE(zero.AwaitReady()->status.ok());
  process.Signal(SIGKILL);
  EXPECT_TRUE(zero.AwaitPeer(1, "gone"));
}

TEST(FabricProcess, IsSuspectWhileStoppedAndAliveAgainAfterwards) {
  Process process(false);
  Host host;
  process.Meet(host);
  Member zero(host.OptionsFor(0, 2, "n1"));
  ASSERT_TRUE(zero.AwaitReady()->status.ok());
  process.Signal(SIGSTOP);
  EXPECT_TRUE(zero.AwaitPeer(1, "suspect"));
  process.Signal(SIGCONT);
  EXPECT_TRUE(zero.AwaitPeer(1, "alive"));
  ASSERT_TRUE(zero.Do([](Fabric* f) { return f->SendTo(1, 4, "hello"); }).ok());
  EXPECT_TRUE(zero.AwaitMessage(1, 4, "hello"));
}

// The worker inherits no connection of Cairn's, so its parent's end is seen at once, long before the heartbeats' bound.
TEST(FabricProcess, IsGoneOnceKilledThoughAForkedWorkerLivesOn) {
  Process process(true);
  Host host;
  process.Meet(host);
  FabricOptions options = host.OptionsFor(0, 2, "n1");
  options.suspect_after = options.gone_after = std::chrono::hours(1);
  Member zero(options);
  ASSERT_TRUE(zero.AwaitReady()->status.ok());
  ASSERT_TRUE(zero.Do([](Fabric* f) { return f->SendTo(1, 4, "fork"); }).ok());
  const auto worker = zero.Await([](const Event& e) { return e.kind == Event::kMessage; });
  ASSERT_TRUE(worker.has_value());
  process.Signal(SIGKILL);
  EXPECT_TRUE(zero.AwaitPeer(1, "gone"));
  EXPECT_EQ(kill(std::stoi(worker->text), SIGKILL), 0) << "the worker was to live on";
}

}  // namespace
}  // namespace cairn
