#include "runtime/bulk/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

namespace cairn {
namespace {

using ::testing::HasSubstr;

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class BulkStreamTest : public ::testing::Test {
 protected:
  BulkStreamTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    far_ = UniqueFd(ends[0]);
    near_.emplace(Socket(ends[1]), *Breaker::Make(), std::chrono::milliseconds(60000));
  }
  // "x", and so many descriptors along with it.
  void Send(size_t descriptors) {
    char byte = 'x';
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const std::vector<int> fds(descriptors, far_.get());
    alignas(cmsghdr) char room[CMSG_SPACE(8 * sizeof(int))] = {};
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), descriptors * sizeof(int));
    ASSERT_EQ(sendmsg(far_.get(), &message, 0), 1);
  }

  UniqueFd far_;
  std::optional<BulkStream> near_;
};

TEST_F(BulkStreamTest, TakesTheDescriptorThatCameAlong) {
  const size_t before = OpenDescriptors();
  Send(1);
  std::byte byte{};
  {
    UniqueFd descriptor;
    ASSERT_TRUE(near_->ReadSome({&byte, 1}, &descriptor).ok());
    EXPECT_TRUE(descriptor.valid());
    EXPECT_EQ(OpenDescriptors(), before + 1);
  }
  EXPECT_EQ(byte, std::byte{'x'});
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(BulkStreamTest, RefusesMoreThanOneDescriptorAndKeepsNoneOpen) {
  const size_t before = OpenDescriptors();
  for (const size_t sent : {2, 3, 8}) {
    Send(sent);
    std::byte byte{};
    UniqueFd descriptor;
    const auto read = near_->ReadSome({&byte, 1}, &descriptor);
    EXPECT_EQ(read.status().code(), Code::kUnavailable) << sent;
    EXPECT_THAT(read.status().message(), HasSubstr("more than one"));
    EXPECT_FALSE(descriptor.valid());
    EXPECT_EQ(OpenDescriptors(), before) << sent;
  }
}

TEST_F(BulkStreamTest, ClosesDescriptorsThatNobodyAskedFor) {
  const size_t before = OpenDescriptors();
  Send(2);
  std::byte byte{};
  EXPECT_TRUE(near_->ReadSome({&byte, 1}).ok());
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace cairn
