#include "runtime/control/control_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/control/control_frame.h"
#include "runtime/control/frame.h"
#include "runtime/control/handshake.h"
#include "runtime/control/socket.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

using TimePoint = ControlClient::TimePoint;
using nlohmann::json;

constexpr std::chrono::seconds kAttemptBound{3};
constexpr size_t kMaxControlFileBytes = 16384;

Status WaitFor(const Socket& socket, short events, TimePoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Status(Code::kTimeout, "no answer in time");
    pollfd p{socket.fd(), events, 0};
    const int n = poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count(), 60000)));
    if (n > 0) return OkStatus();
    if (n < 0 && errno != EINTR) return Status::FromErrno(errno, "poll");
  }
}

Status WriteAll(const Socket& socket, std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const ssize_t n = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == ENOTCONN) {
      CAIRN_RETURN_IF_ERROR(WaitFor(socket, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Status(Code::kUnavailable, Status::FromErrno(errno, "write").message());
    }
  }
  return OkStatus();
}

// The next bytes; kUnavailable at the end of the stream.
Result<std::string> ReadSome(const Socket& socket, TimePoint deadline) {
  std::string bytes(65536, '\0');
  for (;;) {
    const ssize_t n = recv(socket.fd(), bytes.data(), bytes.size(), 0);
    if (n > 0) {
      bytes.resize(static_cast<size_t>(n));
      return bytes;
    }
    if (n == 0) return Status(Code::kUnavailable, "the session has ended, or its leader is not there");
    if (errno == EAGAIN) {
      CAIRN_RETURN_IF_ERROR(WaitFor(socket, POLLIN, deadline));
    } else if (errno != EINTR) {
      return Status(Code::kUnavailable, Status::FromErrno(errno, "read").message());
    }
  }
}

std::string ControlPath(const std::string& dir) { return dir + "/CONTROL"; }

}  // namespace

Status WriteControlFile(const std::string& dir, const ControlPoint& point) {
  const std::string text = json{{"rendezvous", point.rendezvous},
                                {"key", point.key},
                                {"session", point.session},
                                {"control_key", point.control_key.Hex()}}
                               .dump(-1, ' ', false, json::error_handler_t::replace) +
                           "\n";
  return PublishFile(ControlPath(dir), text, 0600);
}

void RemoveControlFile(const std::string& dir, const ControlPoint& point) {
  const Result<ControlPoint> there = ReadControlFile(dir);
  if (there.ok() && there->key == point.key && there->session == point.session &&
      there->rendezvous == point.rendezvous) {
    (void)RemoveFile(ControlPath(dir));
  }
}

Result<ControlPoint> ReadControlFile(const std::string& dir) {
  const std::string path = ControlPath(dir);
  const Result<std::string> text = ReadAll(path, kMaxControlFileBytes);
  if (text.status().code() == Code::kNotFound) {
    return Status(Code::kNotFound,
                  "no running session keeps its checkpoints in " + dir + " (there is no " + path + ")");
  }
  CAIRN_RETURN_IF_ERROR(text.status());
  try {
    const json j = json::parse(*text);
    ControlPoint point{j.at("rendezvous").get<std::string>(),
                       j.at("key").get<std::string>(),
                       j.at("session").get<std::string>(),
                       {}};
    CAIRN_ASSIGN_OR_RETURN(point.control_key, Secret::FromHex(j.at("control_key").get<std::string>()));
    return point;
  } catch (const json::exception& e) {
    return Status(Code::kInvalid, path + " is not what a session writes there: " + e.what());
  }
}

struct ControlClient::Impl {
  Socket socket;
  Handshake handshake;
  std::optional<FrameEncoder> encoder;
  std::optional<FrameDecoder> decoder;
  std::deque<std::string> replies;

  Status Open(TimePoint deadline) {
    CAIRN_RETURN_IF_ERROR(WaitFor(socket, POLLOUT, deadline));
    CAIRN_RETURN_IF_ERROR(WriteAll(socket, handshake.Start(), deadline));
    while (!handshake.done()) {
      auto bytes = ReadSome(socket, deadline);
      if (!bytes.ok() && bytes.status().code() == Code::kUnavailable) {
        return Status(Code::kPermission,
                      "refused: what listens there belongs to another life or another user");
      }
      CAIRN_RETURN_IF_ERROR(bytes.status());
      CAIRN_ASSIGN_OR_RETURN(const std::string answer, handshake.Feed(*bytes));
      CAIRN_RETURN_IF_ERROR(WriteAll(socket, answer, deadline));
    }
    encoder.emplace(handshake.send_key());
    decoder.emplace(handshake.receive_key());
    return Decode(handshake.TakeRest());
  }

  Status Decode(std::string_view bytes) {
    std::vector<Frame> frames;
    CAIRN_RETURN_IF_ERROR(decoder->Feed(bytes, &frames));
    for (Frame& frame : frames) {
      if (frame.type == kControlReplyFrame) replies.push_back(std::move(frame.payload));
    }
    return OkStatus();
  }
};

ControlClient::ControlClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlClient::~ControlClient() = default;

Result<std::unique_ptr<ControlClient>> ControlClient::Connect(const ControlPoint& point, TimePoint deadline) {
  HandshakeParty party{Role::kControl, Role::kHost, point.key, point.session, 0, 0, point.control_key};
  Status failed(Code::kUnavailable, "no address is known");
  for (const std::string& text : SplitAddresses(point.rendezvous)) {
    CAIRN_ASSIGN_OR_RETURN(const Address address, Address::Parse(text));
    auto socket = StartConnect(address);
    Status status = socket.status();
    if (socket.ok()) {
      std::unique_ptr<Impl> impl(new Impl{*std::move(socket), Handshake::Client(party), {}, {}, {}});
      status = impl->Open(std::min(deadline, std::chrono::steady_clock::now() + kAttemptBound));
      if (status.ok()) return std::unique_ptr<ControlClient>(new ControlClient(std::move(impl)));
    }
    // A refusal says more than the silence of the other addresses.
    if (failed.code() != Code::kPermission) failed = status.Annotate(text);
  }
  if (failed.code() == Code::kPermission) return failed;
  return Status(Code::kUnavailable, "the session does not answer, it may have ended: " + failed.message());
}

Status ControlClient::Send(std::string_view request) {
  return WriteAll(impl_->socket, impl_->encoder->Encode(kControlRequestFrame, request),
                  std::chrono::steady_clock::now() + kAttemptBound);
}

Result<std::string> ControlClient::Receive(TimePoint deadline) {
  while (impl_->replies.empty()) {
    CAIRN_ASSIGN_OR_RETURN(const std::string bytes, ReadSome(impl_->socket, deadline));
    CAIRN_RETURN_IF_ERROR(impl_->Decode(bytes));
  }
  std::string reply = std::move(impl_->replies.front());
  impl_->replies.pop_front();
  return reply;
}

}  // namespace cairn
