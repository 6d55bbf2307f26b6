#include "runtime/control/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace cairn {
namespace {

constexpr std::chrono::seconds kProofBound{5};
constexpr std::chrono::milliseconds kShortageWait{100};
constexpr size_t kMaxGuests = 256;

}  // namespace

Acceptor::Acceptor(Loop* loop, std::vector<Socket> listeners, HandshakeParty party, std::vector<Role> accepts,
                   OnAccepted on_accepted, OnRefused on_refused)
    : loop_(loop),
      party_(std::move(party)),
      accepts_(std::move(accepts)),
      on_accepted_(std::move(on_accepted)),
      on_refused_(std::move(on_refused)),
      reopen_(loop, [this] { Watch(); }) {
  for (Socket& s : listeners) {
    const int fd = s.fd();
    doors_.push_back(
        {std::move(s), std::make_unique<FdWatcher>(loop, fd, [this, fd](bool, bool) { Accept(fd); })});
  }
  Watch();
}

Acceptor::~Acceptor() = default;

void Acceptor::Watch() {
  for (Door& door : doors_) door.watcher->Watch(true, false);
}

void Acceptor::Accept(int listener) {
  Socket socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.fd() < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      for (Door& door : doors_) door.watcher->Watch(false, false);
      reopen_.Once(kShortageWait);
    }
    return;
  }
  if (const Status user = CheckPeerUser(socket); !user.ok())
    return Count(Refusal::kWrongToken, user.message());
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on,
             sizeof(on));  // fails on a Unix socket, which has no delay
  if (guests_.size() >= kMaxGuests)
    Refuse(guests_.begin(), Refusal::kTooMany, "too many connections prove nothing");

  const auto guest = guests_.insert(guests_.end(), Guest{});
  ConnectionEvents events;
  events.on_open = [this, guest] { Admit(guest); };
  events.on_close = [this, guest](const Status& why) {
    const Handshake& handshake = guest->connection->handshake();
    if (handshake.refusal() != Refusal::kNone) return Refuse(guest, handshake.refusal(), why.message());
    // An honest member with another token leaves as soon as our challenge shows it that ours differs.
    if (handshake.challenged())
      return Refuse(guest, Refusal::kWrongToken, "a member gave no proof of our token, and left");
    Refuse(guest, Refusal::kGarbage, why.message());
  };
  guest->connection = std::make_unique<Connection>(loop_, std::move(socket), Connection::Side::kServer,
                                                   Handshake::Server(party_, accepts_), std::move(events));
  guest->bound = std::make_unique<Timer>(
      loop_, [this, guest] { Refuse(guest, Refusal::kTooSlow, "a connection proved nothing within 5 s"); });
  guest->bound->Once(kProofBound);
}

void Acceptor::Admit(std::list<Guest>::iterator guest) {
  auto connection = std::move(guest->connection);
  guests_.erase(guest);
  connection->SetEvents({});
  on_accepted_(std::move(connection));
}

void Acceptor::Refuse(std::list<Guest>::iterator guest, Refusal kind, const std::string& why) {
  guests_.erase(guest);
  Count(kind, why);
}

void Acceptor::Count(Refusal kind, const std::string& why) {
  if (refused_[static_cast<size_t>(kind)]++ == 0 && on_refused_) {
    on_refused_("refused a connection (" + std::string(RefusalName(kind)) + "): " + why);
  }
}

}  // namespace cairn
