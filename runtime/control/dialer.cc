#include "runtime/control/dialer.h"

#include <chrono>
#include <utility>

namespace cairn {
namespace {

constexpr std::chrono::seconds kAttemptBound{3};
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

Dialer::Dialer(Loop* loop, std::vector<std::string> addresses, HandshakeParty party, Done done)
    : loop_(loop),
      addresses_(std::move(addresses)),
      party_(std::move(party)),
      done_(std::move(done)),
      timer_(loop, [this] {
        if (attempt_) return Failed(Status(Code::kTimeout, "no answer"));
        Try();
      }) {
  timer_.Once(std::chrono::milliseconds(0));
}

void Dialer::Try() {
  if (addresses_.empty()) return Failed(Status(Code::kInvalid, "there is no address to connect to"));
  auto address = Address::Parse(addresses_[next_]);
  if (!address.ok()) return Failed(address.status());
  auto socket = StartConnect(*address);
  if (!socket.ok()) return Failed(socket.status());
  ConnectionEvents events;
  events.on_open = [this] {
    timer_.Stop();
    attempt_->SetEvents({});
    const auto done = done_;
    done(std::move(attempt_));
  };
  events.on_close = [this](const Status& why) { Failed(why); };
  attempt_ = std::make_unique<Connection>(loop_, *std::move(socket), Connection::Side::kClient,
                                          Handshake::Client(party_), std::move(events));
  timer_.Once(kAttemptBound);
}

void Dialer::Failed(const Status& why) {
  attempt_.reset();
  last_error_ = addresses_.empty() ? why : why.Annotate(addresses_[next_]);
  if (why.code() == Code::kPermission) refusal_ = last_error_;
  ++next_;
  const bool round_over = next_ >= addresses_.size();
  if (round_over) {
    next_ = 0;
    if (!refusal_.ok()) {
      const auto done = done_;
      return done(refusal_);
    }
  }
  timer_.Once(round_over ? kPause : std::chrono::milliseconds(0));
}

}  // namespace cairn
