#include "runtime/bulk/stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cairn {
namespace {

bool Again(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Room for one descriptor beside the bytes.
union Ancillary {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))] = {};
};

Status Lost(int error, std::string_view what) {
  Status status = Status::FromErrno(error, what);
  return {Code::kUnavailable, status.message()};
}

}  // namespace

Status BulkStream::Await(short events) {
  const auto until = std::chrono::steady_clock::now() + stall_bound_;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd fds[] = {{socket_.fd(), events, 0}, {breaker_->fd(), POLLIN, 0}};
    const int n = poll(fds, 2, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (n < 0 && errno != EINTR) return Status::FromErrno(errno, "poll");
    if (n > 0 && fds[1].revents != 0) return breaker_->status();
    if (n > 0) return OkStatus();
    if (n == 0)
      return {Code::kTimeout, "no byte moved for " + std::to_string(stall_bound_.count() / 1000) + " s"};
  }
}

Result<size_t> BulkStream::ReadSome(std::span<std::byte> out, UniqueFd* descriptor) {
  for (;;) {
    iovec part{out.data(), out.size()};
    Ancillary room;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor != nullptr) {  // without room the kernel closes what comes along
      message.msg_control = room.bytes;
      message.msg_controllen = CMSG_LEN(sizeof(int));  // sizeof(room.bytes) would take two, for its padding
    }
    const ssize_t n = recvmsg(socket_.fd(), &message, MSG_CMSG_CLOEXEC);
    if (n > 0) {
      const cmsghdr* came = CMSG_FIRSTHDR(&message);
      if (came != nullptr && came->cmsg_level == SOL_SOCKET && came->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(came), sizeof(fd));
        *descriptor = UniqueFd(fd);
      }
      if (descriptor != nullptr && (message.msg_flags & MSG_CTRUNC) != 0) {
        *descriptor = UniqueFd();
        return Status(Code::kUnavailable,
                      "a descriptor that came along was not taken: there were more than one, or this process "
                      "has too many open files (ulimit -n)");
      }
      return static_cast<size_t>(n);
    }
    if (n == 0) return Status(Code::kUnavailable, "the other end closed the connection");
    if (errno == EINTR) continue;
    if (!Again(errno)) return Lost(errno, "receive");
    CAIRN_RETURN_IF_ERROR(Await(POLLIN));
  }
}

Status BulkStream::Read(std::span<std::byte> out) {
  while (!out.empty()) {
    CAIRN_ASSIGN_OR_RETURN(const size_t n, ReadSome(out));
    out = out.subspan(n);
  }
  return OkStatus();
}

Status BulkStream::Write(std::string_view head, std::span<const std::byte> body, int descriptor) {
  while (!head.empty() || !body.empty()) {
    iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                     {const_cast<std::byte*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    Ancillary along;
    if (descriptor >= 0) {
      message.msg_control = along.bytes;
      message.msg_controllen = sizeof(along.bytes);
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    }
    const ssize_t n = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (!Again(errno)) return Lost(errno, "send");
      CAIRN_RETURN_IF_ERROR(Await(POLLOUT));
      continue;
    }
    descriptor = -1;  // it has gone along
    const size_t of_head = std::min(static_cast<size_t>(n), head.size());
    head.remove_prefix(of_head);
    body = body.subspan(static_cast<size_t>(n) - of_head);
  }
  return OkStatus();
}

}  // namespace cairn
