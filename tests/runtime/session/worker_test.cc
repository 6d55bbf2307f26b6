#include "runtime/session/worker.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

namespace cairn {
namespace {

TEST(Worker, TellsWhatATaskThrowsAndRunsTheNextOne) {
  std::vector<Status> thrown;
  bool ran = false;
  Worker worker([&](const Status& why) { thrown.push_back(why); });
  worker.Run([] { throw std::bad_alloc(); });
  worker.Run([] { throw std::runtime_error("no thread"); });
  worker.Run([&] { ran = true; });
  worker.Join();
  EXPECT_TRUE(ran);
  ASSERT_EQ(thrown.size(), 2u);
  EXPECT_EQ(thrown[0].code(), Code::kOutOfMemory);
  EXPECT_EQ(thrown[1].message(), "no thread");
}

}  // namespace
}  // namespace cairn
