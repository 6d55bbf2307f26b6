// A server whose name is looked up without end: getaddrinfo is this file's for the whole process, libcurl's thread among it.
#include <gtest/gtest.h>
#include <netdb.h>

#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>

#include "runtime/s3/s3_store.h"
#include "tests/runtime/s3/variables.h"

namespace {

std::mutex mutex;
std::condition_variable changed;
bool asked = false, answered = false;  // guarded by mutex

}  // namespace

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char*, const char*, const addrinfo*,
                                                                  addrinfo**) {
  std::unique_lock lock(mutex);
  asked = true;
  changed.notify_all();
  changed.wait(lock, [] { return answered; });
  return EAI_FAIL;
}

namespace cairn {
namespace {

TEST(S3Store, GivesUpARequestWhoseServersNameIsLookedUpWithoutEnd) {
  S3Config config;
  config.bucket = "lab";
  setenv("no_proxy", "*", 1);
  config.endpoint = "http://s3.invalid";
  config.path_style = true;
  config.stall = std::chrono::milliseconds(20);
  config.deadline = std::chrono::milliseconds(20);
  const auto store = S3Store::Open(config, Of({{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "s"}}));
  ASSERT_TRUE(store.ok()) << store.status().message();
  auto got = std::async(std::launch::async, [&] { return (*store)->Get("k", 100).status(); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return asked; });
  }
  EXPECT_EQ(got.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  {
    std::lock_guard lock(mutex);
    answered = true;
    changed.notify_all();
  }
  EXPECT_EQ(got.get().code(), Code::kTimeout);
}

}  // namespace
}  // namespace cairn
