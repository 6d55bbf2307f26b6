#include "runtime/control/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace cairn {
namespace {

constexpr std::chrono::seconds kProofBound{5};
constexpr std::chrono::milliseconds kHelloBound{500};
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
  watching_ = true;
  for (Door& door : doors_) door.watcher->Watch(true, false);
}

void Acceptor::Pause() {
  watching_ = false;
  for (Door& door : doors_) door.watcher->Watch(false, false);
}

void Acceptor::Accept(int listener) {
  if (guests_.size() >= kMaxGuests) {
    const auto silent = std::find_if(guests_.begin(), guests_.end(), [](const Guest& guest) {
      return !guest.connection->handshake().challenged();
    });
    if (silent == guests_.end()) return Pause();  // until one has proven itself, or is refused
    const auto age = std::chrono::steady_clock::now() - silent->since;
    if (age < kHelloBound) {  // its hello may be on the way
      Pause();
      return reopen_.Once(std::chrono::ceil<std::chrono::milliseconds>(kHelloBound - age));
    }
    Refuse(silent, Refusal::kTooMany, "too many connections prove nothing");
  }
  Socket socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.fd() < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      Pause();
      reopen_.Once(kShortageWait);
    }
    return;
  }
  if (const Status user = CheckPeerUser(socket); !user.ok())
    return Count(Refusal::kWrongToken, user.message());
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on,
             sizeof(on));  // fails on a Unix socket, which has no delay

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
  guest->since = std::chrono::steady_clock::now();
  guest->bound = std::make_unique<Timer>(
      loop_, [this, guest] { Refuse(guest, Refusal::kTooSlow, "a connection proved nothing within 5 s"); });
  guest->bound->Once(kProofBound);
}

void Acceptor::Dismiss(std::list<Guest>::iterator guest) {
  guests_.erase(guest);
  if (!watching_) Watch();
}

void Acceptor::Admit(std::list<Guest>::iterator guest) {
  auto connection = std::move(guest->connection);
  Dismiss(guest);
  connection->SetEvents({});
  on_accepted_(std::move(connection));
}

void Acceptor::Refuse(std::list<Guest>::iterator guest, Refusal kind, const std::string& why) {
  Dismiss(guest);
  Count(kind, why);
}

void Acceptor::Count(Refusal kind, const std::string& why) {
  if (refused_[static_cast<size_t>(kind)]++ == 0 && on_refused_) {
    on_refused_("refused a connection (" + std::string(RefusalName(kind)) + "): " + why);
  }
}

}  // namespace cairn
