#include "runtime/io/write_engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/io/fd.h"
#include "runtime/io/pwrite_engine.h"
#include "runtime/io/uring_engine.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

constexpr size_t kPage = 4096;

// Page-aligned pseudo-random bytes.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)), &std::free) {
    std::mt19937_64 random(7);
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
      const uint64_t value = random();
      std::memcpy(data_.get() + i, &value, sizeof value);
    }
  }
  std::span<const std::byte> Part(size_t begin, size_t size) const { return {data_.get() + begin, size}; }
  std::string ToString() const { return {reinterpret_cast<const char*>(data_.get()), bytes_}; }

 private:
  size_t bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> data_;
};

std::string ReadBack(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Kind {
  const char* name;
  std::function<std::unique_ptr<WriteEngine>()> make;  // null: this machine has none
};

std::unique_ptr<WriteEngine> Uring(int depth) {
  auto engine = MakeUringEngine(depth);
  return engine.ok() ? *std::move(engine) : nullptr;
}

class Engines : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    engine_ = GetParam().make();
    if (engine_ == nullptr) GTEST_SKIP() << CheckIoUring().message();
  }

  UniqueFd Create(const std::string& name, int flags = 0) {
    const std::string path = Path(name);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
    EXPECT_GE(fd, 0) << path;
    return UniqueFd(fd);
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  // All of them, as many at a time as the engine takes: errors by tag.
  std::map<uint64_t, int> Write(const std::vector<BlockWrite>& blocks) {
    std::map<uint64_t, int> errors;
    const auto take = [&](const BlockDone& done) {
      EXPECT_TRUE(errors.emplace(done.tag, done.error).second) << "twice: " << done.tag;
    };
    for (const BlockWrite& block : blocks) {
      while (engine_->in_flight() == engine_->depth()) take(engine_->Wait());
      engine_->Submit(block);
    }
    while (engine_->in_flight() > 0) take(engine_->Wait());
    EXPECT_FALSE(engine_->Poll().has_value());
    EXPECT_EQ(errors.size(), blocks.size());
    return errors;
  }

  TempDir dir_;
  std::unique_ptr<WriteEngine> engine_;
};

INSTANTIATE_TEST_SUITE_P(, Engines,
                         ::testing::Values(Kind{"IoUring", [] { return Uring(8); }},
                                           Kind{"IoUringOfDepth1", [] { return Uring(1); }},
                                           Kind{"Pwrite", [] { return MakePwriteEngine(4); }},
                                           Kind{"PwriteWithoutThreads", [] { return MakePwriteEngine(0); }}),
                         [](const auto& kind) { return std::string(kind.param.name); });

std::vector<std::pair<uint64_t, int>> Failures(const std::map<uint64_t, int>& errors) {
  std::vector<std::pair<uint64_t, int>> out;
  std::copy_if(errors.begin(), errors.end(), std::back_inserter(out),
               [](const auto& e) { return e.second != 0; });
  return out;
}

using Failed = std::vector<std::pair<uint64_t, int>>;

TEST_P(Engines, PutEachBlockInItsPlace) {
  const size_t sizes[] = {1, 511, 4096, 70000, 3, 1 << 20};
  const Memory memory(4 << 20);
  const size_t total = memory.ToString().size();
  std::vector<BlockWrite> blocks;
  const UniqueFd file = Create("file");
  for (size_t at = 0; at < total;) {
    const size_t size = std::min(sizes[blocks.size() % 6], total - at);
    blocks.push_back({file.get(), memory.Part(at, size), at, blocks.size()});
    at += size;
  }
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(3));
  EXPECT_EQ(Failures(Write(blocks)), Failed());
  EXPECT_EQ(ReadBack(Path("file")), memory.ToString());
}

TEST_P(Engines, WritePastThePageCacheIntoSeveralFiles) {
  const Memory memory(2 << 20);
  std::vector<UniqueFd> files;
  std::vector<BlockWrite> blocks;
  for (int f = 0; f < 3; ++f) {
    files.push_back(Create(std::to_string(f)));
    // A file system without O_DIRECT takes them through its cache.
    static_cast<void>(fcntl(files.back().get(), F_SETFL, O_DIRECT));
    for (size_t at = 0; at < 2 << 20; at += 128 << 10)
      blocks.push_back({files.back().get(), memory.Part(at, 128 << 10), at, blocks.size()});
  }
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(4));
  EXPECT_EQ(Failures(Write(blocks)), Failed());
  for (int f = 0; f < 3; ++f) EXPECT_EQ(ReadBack(Path(std::to_string(f))), memory.ToString()) << f;
}

TEST_P(Engines, TellWhichBlockFailedAndWriteTheOthers) {
  const Memory memory(16 * kPage);
  const UniqueFd file = Create("file");
  const UniqueFd read_only(open(Path("file").c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<BlockWrite> blocks;
  for (size_t i = 0; i < 16; ++i)
    blocks.push_back(
        {i == 5 ? read_only.get() : file.get(), memory.Part(i * kPage, kPage), i * kPage, 100 + i});
  EXPECT_EQ(Failures(Write(blocks)), (Failed{{105, EBADF}}));
  std::string expected = memory.ToString();
  std::fill_n(expected.begin() + 5 * kPage, kPage, '\0');
  EXPECT_EQ(ReadBack(Path("file")), expected);
}

TEST_P(Engines, GoOnAfterAShortWriteAndTellWhatStoppedTheRest) {
  const Memory memory(1 << 20);
  const UniqueFd file = Create("file");
  const auto ignore = signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 100 * kPage + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto errors = Write({{file.get(), memory.Part(0, 50 * kPage), 0, 1},
                             {file.get(), memory.Part(50 * kPage, 100 * kPage), 50 * kPage, 2}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, ignore);
  EXPECT_EQ(Failures(errors), (Failed{{2, EFBIG}}));
  EXPECT_EQ(ReadBack(Path("file")), memory.ToString().substr(0, 100 * kPage + 10));
}

TEST_P(Engines, ReportAFullFileSystem) {
  if (mount("cairn", dir_.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const Memory memory(2 << 20);
  {
    const UniqueFd file = Create("file");
    EXPECT_EQ(Failures(Write({{file.get(), memory.Part(0, 2 << 20), 0, 9}})), (Failed{{9, ENOSPC}}));
  }
  umount2(dir_.path().c_str(), MNT_DETACH);
}

TEST_P(Engines, ReportWhatO_DIRECTDoesNotTake) {
  const Memory memory(2 * kPage);
  const UniqueFd file = Create("file");
  if (fcntl(file.get(), F_SETFL, O_DIRECT) != 0) GTEST_SKIP() << "the file system has no O_DIRECT";
  EXPECT_EQ(Failures(Write({{file.get(), memory.Part(1, 100), 7, 4}})), (Failed{{4, EINVAL}}));
}

TEST_P(Engines, FinishWhatIsInFlightBeforeTheyGo) {
  const Memory memory(1 << 20);
  const UniqueFd file = Create("file");
  const size_t part = (1 << 20) / static_cast<size_t>(engine_->depth());
  for (size_t at = 0; at < 1 << 20; at += part) engine_->Submit({file.get(), memory.Part(at, part), at, 0});
  engine_.reset();
  EXPECT_EQ(ReadBack(Path("file")), memory.ToString());
}

TEST_P(Engines, AreNotStoppedBySignals) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};  // without SA_RESTART: calls come back with EINTR
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  itimerval often{{0, 200}, {0, 200}}, never{};
  const Memory memory(4 << 20);
  const UniqueFd file = Create("file");
  std::vector<BlockWrite> blocks;
  for (size_t at = 0; at < 4 << 20; at += 32 << 10)
    blocks.push_back({file.get(), memory.Part(at, 32 << 10), at, blocks.size()});
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto errors = Write(blocks);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(Failures(errors), Failed());
  EXPECT_EQ(ReadBack(Path("file")), memory.ToString());
}

// As containers do it: from now on `call` fails with EPERM in this process.
bool Forbid(long call) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(MakeWriteEngine, FallsBackToPwriteWhereIoUringIsForbidden) {
  for (const long call : {SYS_io_uring_setup, SYS_io_uring_enter}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!Forbid(call)) _exit(2);
      if (CheckIoUring().ok()) _exit(3);
      for (const Writer writer : {Writer::kAuto, Writer::kIoUring}) {
        if (MakeWriteEngine(writer)->name() != "pwrite") _exit(4);
      }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0) << call;
  }
}

TEST(PwriteEngine, TakesNoSignals) {
  const auto engine = MakePwriteEngine(1);
  const Memory memory(kPage);
  engine->Submit({-1, memory.Part(0, kPage), 0, 0});
  EXPECT_EQ(engine->Wait().error, EBADF);  // by now the thread runs, and has its name
  uint64_t blocked = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line;
    std::getline(status, line);
    if (line != "Name:\tcairn-writer") continue;
    while (std::getline(status, line)) {
      if (line.starts_with("SigBlk:")) blocked = std::stoull(line.substr(7), nullptr, 16);
    }
  }
  EXPECT_NE(blocked & (uint64_t{1} << (SIGTERM - 1)), 0u);
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

TEST(MakeWriteEngine, TakesIoUringWhereTheKernelHasIt) {
  EXPECT_EQ(MakeWriteEngine(Writer::kPwrite)->name(), "pwrite");
  if (!CheckIoUring().ok()) GTEST_SKIP() << CheckIoUring().message();
  EXPECT_EQ(MakeWriteEngine(Writer::kAuto)->name(), "io_uring");
}

}  // namespace
}  // namespace cairn
