#include "runtime/bulk/receiver.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "runtime/bulk/stream.h"
#include "runtime/control/handshake.h"
#include "runtime/io/thread.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kProofBound{5000};
constexpr milliseconds kShortageWait{100};  // before another accept, when there were no descriptors
constexpr size_t kMaxStrangers = 256;       // connections that have proved nothing; the oldest gives way

}  // namespace

// A connection. A stranger until its handshake is done.
struct BulkReceiver::Guest {
  Guest(Socket socket, const std::shared_ptr<Breaker>& breaker, const BulkIdentity& self)
      : stream(std::move(socket), breaker, self.stall_bound),
        handshake(Handshake::Server({Role::kBulkReceiver, Role::kBulkSender, self.key, self.session,
                                     static_cast<uint32_t>(self.rank), 0, self.BulkToken()},
                                    {Role::kBulkSender})) {}

  int rank() const { return static_cast<int>(handshake.peer_rank()); }
  bool between_messages() const { return header_bytes == 0; }

  BulkStream stream;
  Handshake handshake;
  const Clock::time_point proof_due = Clock::now() + kProofBound;
  size_t proof_bytes = 0;
  uint64_t sequence = 0;
  std::array<std::byte, kBulkHeaderBytes> header;
  size_t header_bytes = 0;  // of the next message that are there
  UniqueFd descriptor;      // that came along with it
};

Result<std::unique_ptr<BulkReceiver>> BulkReceiver::Open(const BulkIdentity& self, uint32_t max_payload_bytes,
                                                         std::shared_ptr<Breaker> breaker,
                                                         BulkEvents events) {
  std::unique_ptr<BulkReceiver> receiver(
      new BulkReceiver(self, max_payload_bytes, std::move(breaker), std::move(events)));
  CAIRN_ASSIGN_OR_RETURN(receiver->done_, Breaker::MakePart(receiver->breaker_));
  const std::string local = "@cairn-" + Secret::Random().Hex().substr(0, 32);
  CAIRN_ASSIGN_OR_RETURN(const Address address, Address::Parse(local));
  if (auto socket = Listen(address); socket.ok()) {
    receiver->addresses_.push_back(local);
    receiver->listeners_.push_back(*std::move(socket));
  }
  auto tcp = ListenTcp("", 0, 0);
  if (tcp.ok()) {
    const std::vector<std::string> reachable = ReachableAddresses(LocalPort(*tcp), "");
    receiver->addresses_.insert(receiver->addresses_.end(), reachable.begin(), reachable.end());
    receiver->listeners_.push_back(*std::move(tcp));
  }
  if (receiver->listeners_.empty()) return tcp.status();

  try {
    receiver->thread_ = StartThread("cairn-bulk", [raw = receiver.get()] { raw->Main(); });
  } catch (const std::system_error& e) {
    return Status::FromErrno(e.code().value(), "start the thread cairn-bulk");
  }
  return receiver;
}

BulkReceiver::BulkReceiver(const BulkIdentity& self, uint32_t max_payload_bytes,
                           std::shared_ptr<Breaker> breaker, BulkEvents events)
    : self_(self),
      max_payload_bytes_(max_payload_bytes),
      breaker_(std::move(breaker)),
      events_(std::move(events)) {}

BulkReceiver::~BulkReceiver() {
  if (done_) done_->Break({Code::kCancelled, "the transfer is over"});
  if (thread_.joinable()) thread_.join();
}

void BulkReceiver::Main() {
  std::vector<pollfd> fds;
  Clock::time_point accept_again{};
  for (;;) {
    const auto now = Clock::now();
    auto wake = Clock::time_point::max();
    fds.assign({{done_->fd(), POLLIN, 0}});
    for (const Socket& listener : listeners_)
      fds.push_back({listener.fd(), static_cast<short>(now < accept_again ? 0 : POLLIN), 0});
    if (now < accept_again) wake = accept_again;
    for (const auto& guest : guests_) {
      fds.push_back({guest->stream.fd(), POLLIN, 0});
      if (!guest->handshake.done()) wake = std::min(wake, guest->proof_due);
    }
    const auto left = std::chrono::duration_cast<milliseconds>(wake - now).count() + 1;
    const int timeout = wake == Clock::time_point::max() ? -1 : static_cast<int>(std::max<int64_t>(left, 0));
    if (poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) {
      const Status failed = Status::FromErrno(errno, "poll");
      return breaker_->Break(failed.Annotate("bulk data"));
    }
    if (fds[0].revents != 0) return;

    size_t at = 1 + listeners_.size();
    for (auto it = guests_.begin(); it != guests_.end(); ++at) {
      Guest& guest = **it;
      Status status;
      if (!guest.handshake.done()) {
        if (fds[at].revents != 0) status = Greet(guest);
        if (status.ok() && !guest.handshake.done() && Clock::now() >= guest.proof_due)
          status = {Code::kTimeout, "a connection proved nothing within 5 s"};
        if (!status.ok()) Refuse(status.message());
      } else if (fds[at].revents != 0) {
        status = Receive(guest);
        const bool farewell = status.code() == Code::kUnavailable && guest.between_messages();
        if (!done_->status().ok()) return;
        if (!status.ok() && !farewell && events_.lost)
          events_.lost(guest.rank(), status.Annotate("bulk data of rank " + std::to_string(guest.rank())));
      }
      it = status.ok() ? std::next(it) : guests_.erase(it);
    }
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (fds[1 + i].revents != 0 && !Accept(listeners_[i])) accept_again = Clock::now() + kShortageWait;
    }
  }
}

bool BulkReceiver::Accept(const Socket& listener) {
  Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.fd() < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  if (const Status user = CheckPeerUser(socket); !user.ok()) {
    Refuse(user.message());
    return true;
  }
  const auto stranger = [](const auto& guest) { return !guest->handshake.done(); };
  if (static_cast<size_t>(std::count_if(guests_.begin(), guests_.end(), stranger)) >= kMaxStrangers) {
    Refuse("too many connections prove nothing");
    guests_.erase(std::find_if(guests_.begin(), guests_.end(), stranger));
  }
  guests_.push_back(std::make_unique<Guest>(std::move(socket), done_, self_));
  return true;
}

Status BulkReceiver::Greet(Guest& guest) {
  // Not a byte behind the proof: the first message begins there.
  std::byte bytes[256];
  const size_t most = guest.handshake.challenged() ? sizeof(Mac) - guest.proof_bytes : sizeof(bytes);
  CAIRN_ASSIGN_OR_RETURN(const size_t n, guest.stream.ReadSome(std::span(bytes).first(most)));
  if (guest.handshake.challenged()) guest.proof_bytes += n;
  CAIRN_ASSIGN_OR_RETURN(const std::string answer,
                         guest.handshake.Feed({reinterpret_cast<const char*>(bytes), n}));
  return guest.stream.Write(answer, {});
}

Status BulkReceiver::Receive(Guest& guest) {
  CAIRN_ASSIGN_OR_RETURN(const size_t n,
                         guest.stream.ReadSome(std::span(guest.header).subspan(guest.header_bytes),
                                               guest.header_bytes == 0 ? &guest.descriptor : nullptr));
  guest.header_bytes += n;
  if (guest.header_bytes < guest.header.size()) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(
      const BulkHeader header,
      DecodeBulkHeader({reinterpret_cast<const char*>(guest.header.data()), guest.header.size()},
                       guest.sequence++, guest.handshake.receive_key()));
  if (header.bytes > max_payload_bytes_)
    return {Code::kInvalid, "a message of " + std::to_string(header.bytes) + " bytes, where at most " +
                                std::to_string(max_payload_bytes_) + " are taken"};
  std::span<std::byte> room;
  if (events_.place) {
    CAIRN_ASSIGN_OR_RETURN(room, events_.place(guest.rank(), header.subject, header.bytes));
  }
  if (room.size() != header.bytes) {
    if (!room.empty()) return {Code::kInternal, "room for another payload was given"};
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(max_payload_bytes_);
    room = {buffer_.get(), header.bytes};
  }
  CAIRN_RETURN_IF_ERROR(guest.stream.Read(room));
  if (Hash128Of(std::span<const std::byte>(room)) != header.hash)
    return {Code::kInvalid, "a payload does not have the checksum of its header"};
  if (!guest.descriptor.valid()) {
    CAIRN_RETURN_IF_ERROR(events_.take(guest.rank(), header.subject, room, header.hash));
  } else if (events_.take_shared) {
    CAIRN_RETURN_IF_ERROR(
        events_.take_shared(guest.rank(), header.subject, room, std::exchange(guest.descriptor, UniqueFd())));
  } else {
    return {Code::kInvalid, "a descriptor that nobody expects"};
  }
  guest.header_bytes = 0;
  return OkStatus();
}

void BulkReceiver::Refuse(const std::string& why) {
  if (!std::exchange(refused_, true) && events_.refused)
    events_.refused("refused a connection for bulk data: " + why);
}

}  // namespace cairn
