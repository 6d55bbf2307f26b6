#include "runtime/bulk/sender.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/bulk/stream.h"
#include "runtime/control/handshake.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAttemptBound{3000};  // one address: connect, and each step of the handshake
constexpr milliseconds kPause{50};           // before all addresses are tried again

}  // namespace

struct BulkSender::Connection {
  std::mutex mutex;
  std::optional<BulkStream> stream;  // guarded by mutex, as are key, sequence and near
  Secret key;
  uint64_t sequence = 0;
  bool near = false;
  uint64_t last_use = 0;  // guarded by the sender's mutex_
};

BulkSender::BulkSender(BulkIdentity self, Locate locate, std::shared_ptr<const Breaker> breaker)
    : self_(std::move(self)), locate_(std::move(locate)), breaker_(std::move(breaker)) {}

BulkSender::~BulkSender() = default;

std::shared_ptr<BulkSender::Connection> BulkSender::Use(int rank) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Connection>& used = connections_[rank];
  if (!used) used = std::make_shared<Connection>();
  used->last_use = ++uses_;
  const std::shared_ptr<Connection> connection = used;
  if (connections_.size() > kMaxConnections) {
    auto idle = connections_.end();  // longest
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      if (it->second.use_count() > 1) continue;  // somebody is sending on it
      if (idle == connections_.end() || it->second->last_use < idle->second->last_use) idle = it;
    }
    if (idle != connections_.end()) connections_.erase(idle);
  }
  return connection;
}

// Does something with a connection that is there, or says why not.
Status BulkSender::With(int rank, const std::function<Status(Connection& connection)>& use) {
  CAIRN_RETURN_IF_ERROR(breaker_->status());
  const std::shared_ptr<Connection> connection = Use(rank);
  std::lock_guard lock(connection->mutex);
  Status used = connection->stream ? OkStatus() : Connect(rank, *connection);
  if (used.ok()) used = use(*connection);
  if (!used.ok()) {
    connection->stream.reset();
    CAIRN_RETURN_IF_ERROR(breaker_->status());  // why it ended, rather than how
  }
  return used.Annotate("bulk data for rank " + std::to_string(rank));
}

Status BulkSender::Send(int rank, const BulkSubject& subject, std::span<const std::byte> payload,
                        const std::optional<Hash128>& hash, int descriptor) {
  if (payload.size() > std::numeric_limits<uint32_t>::max())
    return {Code::kInvalid, "a bulk message of " + std::to_string(payload.size()) + " bytes"};
  return With(rank, [&](Connection& connection) {
    const BulkHeader header{subject, static_cast<uint32_t>(payload.size()),
                            hash ? *hash : Hash128Of(payload)};
    return connection.stream->Write(EncodeBulkHeader(header, connection.sequence++, connection.key), payload,
                                    descriptor);
  });
}

Result<bool> BulkSender::Near(int rank) {
  bool near = false;
  CAIRN_RETURN_IF_ERROR(With(rank, [&](Connection& connection) {
    near = connection.near;
    return OkStatus();
  }));
  return near;
}

Status BulkSender::Connect(int rank, Connection& connection) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, locate_(rank));
  const auto deadline = Clock::now() + kConnectBound;
  for (;;) {
    Status failed(Code::kUnavailable, "it has no address");
    bool refused = !addresses.empty();
    for (const std::string& address : addresses) {
      Status dialled = Dial(rank, address, deadline, connection);
      if (dialled.ok()) return OkStatus();
      CAIRN_RETURN_IF_ERROR(breaker_->status());
      refused &= dialled.code() == Code::kPermission;
      failed = dialled.Annotate(address);
    }
    if (refused || addresses.empty() || Clock::now() >= deadline) return failed;
    pollfd broken{breaker_->fd(), POLLIN, 0};
    poll(&broken, 1, static_cast<int>(kPause.count()));
  }
}

Status BulkSender::Dial(int rank, const std::string& address, Clock::time_point deadline,
                        Connection& connection) {
  CAIRN_ASSIGN_OR_RETURN(const Address to, Address::Parse(address));
  CAIRN_ASSIGN_OR_RETURN(Socket socket, StartConnect(to));
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  const milliseconds bound = std::clamp(left, milliseconds(1), kAttemptBound);
  const int fd = socket.fd();
  pollfd fds[] = {{fd, POLLOUT, 0}, {breaker_->fd(), POLLIN, 0}};
  if (poll(fds, 2, static_cast<int>(bound.count())) == 0) return {Code::kTimeout, "no answer"};
  CAIRN_RETURN_IF_ERROR(breaker_->status());
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return {Code::kUnavailable, Status::FromErrno(error, "connect").message()};

  Handshake handshake =
      Handshake::Client({Role::kBulkSender, Role::kBulkReceiver, self_.key, self_.session,
                         static_cast<uint32_t>(self_.rank), static_cast<uint32_t>(rank), self_.BulkToken()});
  BulkStream greeting(std::move(socket), breaker_, bound);
  CAIRN_RETURN_IF_ERROR(greeting.Write(handshake.Start(), {}));
  while (!handshake.done()) {
    std::byte bytes[256];
    CAIRN_ASSIGN_OR_RETURN(const size_t n, greeting.ReadSome(bytes));
    CAIRN_ASSIGN_OR_RETURN(const std::string answer,
                           handshake.Feed({reinterpret_cast<const char*>(bytes), n}));
    CAIRN_RETURN_IF_ERROR(greeting.Write(answer, {}));
  }
  greeting.set_stall_bound(self_.stall_bound);
  connection.stream.emplace(std::move(greeting));
  connection.key = handshake.send_key();
  connection.sequence = 0;
  connection.near = to.is_unix();
  return OkStatus();
}

}  // namespace cairn
