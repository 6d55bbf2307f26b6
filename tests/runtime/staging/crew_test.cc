#include "runtime/staging/crew.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace cairn {
namespace {

TEST(Crew, DoesEachPartOfEachJobOnce) {
  for (const int size : {1, 2, 5}) {
    Crew crew(size, "test-crew");
    EXPECT_EQ(crew.size(), size);
    for (uint32_t job = 0; job < 2000; ++job) {
      const uint32_t parts = job % 7;
      std::vector<int> done(parts);  // written without atomics: a sanitizer sees whether Run orders them
      std::vector<int> by(parts, -1);
      crew.Run(parts, [&](uint32_t part, int member) {
        ++done[part];
        by[part] = member;
      });
      ASSERT_EQ(done, std::vector<int>(parts, 1)) << "job " << job;
      for (const int member : by) {
        ASSERT_GE(member, 0);
        ASSERT_LT(member, size);
      }
    }
  }
}

TEST(Crew, WorksAtTheSameTime) {
  Crew crew(3, "test-crew");
  std::atomic<int> inside = 0;
  // Each part waits for the two others: alone no thread would come out.
  crew.Run(3, [&](uint32_t, int) {
    ++inside;
    while (inside != 3) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 3);
}

TEST(Crew, WaitsForThePartsOfTheOthers) {
  Crew crew(2, "test-crew");
  std::atomic<int> inside = 0;
  bool done = false;
  crew.Run(2, [&](uint32_t, int member) {
    ++inside;
    while (inside != 2) std::this_thread::yield();
    if (member == 0) return;
    std::this_thread::sleep_for(
        std::chrono::milliseconds(50));  // long after the caller has nothing left to do
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST(Crew, TakesNoSignalsOfTheProgram) {
  Crew crew(2, "test-crew");
  std::atomic<int> inside = 0;
  int blocked = -1;
  crew.Run(2, [&](uint32_t, int member) {
    ++inside;
    while (inside != 2) std::this_thread::yield();
    if (member == 0) return;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM);
  });
  EXPECT_EQ(blocked, 1);
}

TEST(Crew, EndsWithoutEverHavingWorked) { Crew crew(4, "test-crew"); }

}  // namespace
}  // namespace cairn
