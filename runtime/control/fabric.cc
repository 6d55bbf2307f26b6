#include "runtime/control/fabric.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/control/acceptor.h"
#include "runtime/control/dialer.h"
#include "runtime/control/rendezvous.h"
#include "runtime/control/wire.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;

// Frames between a child and its parent.
enum FabricFrame : uint16_t {
  kHeartbeat = 1,
  kMessage = 2,    // envelope: from u32, to u32 (kEverybody: down to all), type u16; then the message
  kNodeReady = 3,  // up: all below are connected
  kReady = 4,      // down: all are connected
  kFailed = 5,     // the session does not form; a text
  kPeer = 6,       // rank u32, state u8; then why
  kLeaving = 7,
};

constexpr uint32_t kEverybody = 0xffffffff;
constexpr size_t kEnvelopeBytes = 10;
constexpr milliseconds kLeaveBound{1000};
constexpr milliseconds kHostGrace{
    5000};  // the host's own bound, which can name the missing ranks, comes first

std::string Envelope(int from, uint32_t to, uint16_t type, std::string_view message) {
  std::string out;
  out.reserve(kEnvelopeBytes + message.size());
  PutWire(&out, static_cast<uint32_t>(from));
  PutWire(&out, to);
  PutWire(&out, type);
  return out.append(message);
}

bool Final(PeerState s) { return s == PeerState::kGone || s == PeerState::kLeft; }

}  // namespace

std::string_view PeerStateName(PeerState state) {
  static constexpr std::string_view kNames[] = {"alive", "suspect", "gone", "left"};
  return kNames[static_cast<size_t>(state)];
}

class Fabric::Impl {
 public:
  Impl(Loop* loop, FabricOptions options, FabricCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        told_(static_cast<size_t>(std::max(options_.world_size, 0)), PeerState::kAlive),
        state_(told_),
        bound_(loop, [this] { OpenBoundPassed(); }),
        tick_(loop, [this] { Tick(); }) {
    loop_->Post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) Start();
    });
  }

  Status SendTo(int rank, uint16_t type, std::string_view payload);
  Status Broadcast(uint16_t type, std::string_view payload);
  Status SendToHost(uint16_t type, std::string_view payload);
  void Leave(std::function<void()> done);
  PeerState state(int rank) const { return state_[static_cast<size_t>(rank)]; }

 private:
  // A neighbour in the tree: the parent, or a child.
  struct Link {
    int rank = -1;
    std::vector<int> covers;  // the ranks that are reached through it
    std::unique_ptr<Connection> connection;
    bool ready = false;  // a child: all below it are connected
    int silent_ticks = 0;
    PeerState state = PeerState::kAlive;
  };

  // Opening.
  void Start();
  void Listen(Registration* registration);
  HandshakeParty Party(Role self, Role peer, int peer_rank) const;
  void HostConnected(std::unique_ptr<Connection> connection, const Registration& registration);
  void HostFrame(uint16_t type, std::string payload);
  void Assigned(Assignment assignment);
  void ChildConnected(std::unique_ptr<Connection> connection);
  void Attach(Link* link, std::unique_ptr<Connection> connection);
  void CheckReady();
  void BecomeReady();
  void FailOpen(Code code, const std::string& why);
  void OpenBoundPassed();

  // Talking.
  void LinkFrame(Link* link, uint16_t type, std::string payload);
  void Route(Link* from, std::string payload);
  void Deliver(int from, uint16_t type, std::string payload);
  void LoopBack(uint16_t type, std::string payload);
  void SendDown(uint16_t type, std::string_view payload);
  Link* Towards(int rank);

  // Watching.
  void Tick();
  void LinkState(Link* link, PeerState state, const std::string& why);
  void PeerFrame(bool from_parent, const std::string& payload);
  enum class Tell : uint8_t { kUp, kDown, kNobody };
  Tell TellBelow() const {
    return options_.rank == 0 ? Tell::kDown : Tell::kUp;
  }  // of what is known from below
  void Update(int rank, const std::string& why, Tell tell);
  bool Below(int rank) const { return branch_.contains(rank); }

  Loop* const loop_;
  const FabricOptions options_;
  const FabricCallbacks callbacks_;

  enum class Phase { kRendezvous, kConnecting, kReady, kClosed } phase_ = Phase::kRendezvous;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Dialer> dialer_;
  std::unique_ptr<Connection> host_;
  std::map<int, std::unique_ptr<Connection>> early_;  // children that came before the host's word
  Link parent_;
  std::map<int, Link> children_;
  std::map<int, int> branch_;     // a rank below this one → the child that leads to it
  std::vector<PeerState> told_;   // by others, of each rank
  std::vector<PeerState> state_;  // as told to the session
  Timer bound_, tick_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// ---- Opening -------------------------------------------------------------------------------------------------------------------------

HandshakeParty Fabric::Impl::Party(Role self, Role peer, int peer_rank) const {
  return {self,
          peer,
          options_.key,
          options_.session,
          static_cast<uint32_t>(options_.rank),
          static_cast<uint32_t>(peer_rank),
          options_.token};
}

void Fabric::Impl::Start() {
  if (options_.rank < 0 || options_.rank >= options_.world_size) {
    return FailOpen(Code::kInvalid, "rank " + std::to_string(options_.rank) + " is outside the world of " +
                                        std::to_string(options_.world_size) + " members");
  }
  if (options_.key.size() > kMaxIdentityBytes || options_.session.size() > kMaxIdentityBytes) {
    return FailOpen(Code::kInvalid, "the session's name is longer than 255 bytes");
  }
  if (options_.rendezvous.empty()) {
    if (options_.world_size == 1) return BecomeReady();
    return FailOpen(
        Code::kInvalid,
        "there is no host process to meet the other members at (SLURM_CAIRN_RENDEZVOUS is not set)");
  }
  Registration registration{
      options_.rank, options_.world_size, options_.node, options_.open_bound.count(), "", {}};
  if (options_.world_size > 1) Listen(&registration);
  dialer_ = std::make_unique<Dialer>(
      loop_, SplitAddresses(options_.rendezvous), Party(Role::kMember, Role::kHost, 0),
      [this, registration](Result<std::unique_ptr<Connection>> connection) {
        if (!connection.ok()) {
          return FailOpen(connection.status().code(),
                          "the host process refused this member: " + connection.status().message());
        }
        HostConnected(*std::move(connection), registration);
      });
  bound_.Once(options_.open_bound + kHostGrace);
}

// Every member listens until the host has said who leads: only leaders go on.
void Fabric::Impl::Listen(Registration* registration) {
  std::vector<Socket> sockets;
  const std::string local = "@cairn-" + Secret::Random().Hex().substr(0, 32);
  if (auto address = Address::Parse(local); address.ok()) {
    if (auto s = cairn::Listen(*address); s.ok()) {
      registration->local = local;
      sockets.push_back(*std::move(s));
    }
  }
  if (auto s = ListenTcp("", 0, 0); s.ok()) {
    registration->addresses = ReachableAddresses(LocalPort(*s), "");
    sockets.push_back(*std::move(s));
  }
  acceptor_ = std::make_unique<Acceptor>(
      loop_, std::move(sockets), Party(Role::kParent, Role::kChild, 0), std::vector<Role>{Role::kChild},
      [this](std::unique_ptr<Connection> connection) { ChildConnected(std::move(connection)); },
      [this](const std::string& line) {
        if (callbacks_.on_refused) callbacks_.on_refused(line);
      });
}

void Fabric::Impl::HostConnected(std::unique_ptr<Connection> connection, const Registration& registration) {
  host_ = std::move(connection);
  ConnectionEvents events;
  events.on_frame = [this](uint16_t type, std::string payload) { HostFrame(type, std::move(payload)); };
  events.on_close = [this](const Status& why) {
    host_.reset();
    if (phase_ == Phase::kRendezvous)
      FailOpen(Code::kUnavailable, "the host process closed the connection: " + why.message());
  };
  host_->SetEvents(std::move(events));
  host_->Send(kRendezvousRegister, EncodeRegistration(registration));
  dialer_.reset();
}

void Fabric::Impl::HostFrame(uint16_t type, std::string payload) {
  if (type == kRendezvousFailed && phase_ == Phase::kRendezvous) return FailOpen(Code::kUnavailable, payload);
  if (type == kRendezvousAssign && phase_ == Phase::kRendezvous) {
    auto assignment = DecodeAssignment(payload);
    if (!assignment.ok()) return FailOpen(Code::kInternal, assignment.status().message());
    if (options_.rank != 0) host_.reset();
    return Assigned(*std::move(assignment));
  }
  if (phase_ == Phase::kReady && callbacks_.on_host) callbacks_.on_host(type, std::move(payload));
}

void Fabric::Impl::Assigned(Assignment assignment) {
  phase_ = Phase::kConnecting;
  for (auto& child : assignment.children) {
    for (int rank : child.covers) branch_[rank] = child.rank;
    Link& link = children_[child.rank];
    link.rank = child.rank;
    link.covers = std::move(child.covers);
  }
  if (children_.empty()) acceptor_.reset();
  for (auto& [rank, connection] : std::exchange(early_, {})) ChildConnected(std::move(connection));
  if (options_.rank != 0) {
    parent_.rank = assignment.parent;
    parent_.covers = {0};
    if (assignment.parent != 0) parent_.covers.push_back(assignment.parent);
    dialer_ = std::make_unique<Dialer>(
        loop_, std::move(assignment.parent_addresses), Party(Role::kChild, Role::kParent, assignment.parent),
        [this](Result<std::unique_ptr<Connection>> connection) {
          if (!connection.ok()) {
            return FailOpen(connection.status().code(),
                            connection.status().Annotate("rank " + std::to_string(parent_.rank)).message());
          }
          Attach(&parent_, *std::move(connection));
          dialer_.reset();
          CheckReady();
        });
  }
  tick_.Every(options_.heartbeat);
  CheckReady();
}

void Fabric::Impl::ChildConnected(std::unique_ptr<Connection> connection) {
  const int rank = static_cast<int>(connection->handshake().peer_rank());
  if (phase_ == Phase::kRendezvous) {
    early_.try_emplace(rank, std::move(connection));
    return;
  }
  const auto child = children_.find(rank);
  if (phase_ != Phase::kConnecting || child == children_.end() || child->second.connection) {
    if (callbacks_.on_refused) {
      callbacks_.on_refused("refused a connection of rank " + std::to_string(rank) +
                            ", which is not awaited here");
    }
    return;
  }
  Attach(&child->second, std::move(connection));
}

void Fabric::Impl::Attach(Link* link, std::unique_ptr<Connection> connection) {
  ConnectionEvents events;
  events.on_frame = [this, link](uint16_t type, std::string payload) {
    LinkFrame(link, type, std::move(payload));
  };
  events.on_close = [this, link](const Status& why) {
    if (phase_ == Phase::kConnecting) {
      return FailOpen(Code::kUnavailable,
                      "rank " + std::to_string(link->rank) + " ended before all members were there");
    }
    LinkState(link, PeerState::kGone, why.message());
  };
  link->connection = std::move(connection);
  link->connection->SetEvents(std::move(events));
}

void Fabric::Impl::CheckReady() {
  if (phase_ != Phase::kConnecting) return;
  if (!std::all_of(children_.begin(), children_.end(), [](const auto& c) { return c.second.ready; })) return;
  if (options_.rank == 0) return BecomeReady();
  if (parent_.connection && !std::exchange(parent_.ready, true)) parent_.connection->Send(kNodeReady, {});
}

void Fabric::Impl::BecomeReady() {
  phase_ = Phase::kReady;
  bound_.Stop();
  acceptor_.reset();  // a connection that ends is not made again
  SendDown(kReady, {});
  if (callbacks_.on_ready) callbacks_.on_ready(OkStatus());
}

void Fabric::Impl::FailOpen(Code code, const std::string& why) {
  if (phase_ == Phase::kReady || phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  bound_.Stop();
  tick_.Stop();
  dialer_.reset();
  SendDown(kFailed, why);
  if (parent_.connection) parent_.connection->Send(kFailed, why);
  if (callbacks_.on_ready) callbacks_.on_ready(Status(code, why));
}

void Fabric::Impl::OpenBoundPassed() {
  if (phase_ == Phase::kRendezvous) {
    if (host_) return FailOpen(Code::kTimeout, "the host process did not tell where the other members are");
    return FailOpen(Code::kTimeout,
                    "the host process does not answer: " +
                        (dialer_ ? dialer_->last_error().message() : std::string("no connection")));
  }
  std::vector<int> missing;
  for (const auto& [rank, link] : children_) {
    if (!link.ready) missing.insert(missing.end(), link.covers.begin(), link.covers.end());
  }
  FailOpen(Code::kTimeout, missing.empty() ? "rank 0 does not answer" : "waiting for " + RankList(missing));
}

// ---- Talking -------------------------------------------------------------------------------------------------------------------------

Status Fabric::Impl::SendTo(int rank, uint16_t type, std::string_view payload) {
  if (payload.size() > kMaxMessageBytes || rank < 0 || rank >= options_.world_size) {
    return Status(Code::kInvalid, "a message of " + std::to_string(payload.size()) + " bytes to rank " +
                                      std::to_string(rank));
  }
  if (phase_ != Phase::kReady) return Status(Code::kUnavailable, "the session is not open");
  if (rank == options_.rank) {
    LoopBack(type, std::string(payload));
    return OkStatus();
  }
  Link* link = Towards(rank);
  if (Final(state(rank)) || link == nullptr || !link->connection) {
    return Status(Code::kUnavailable,
                  "rank " + std::to_string(rank) + " is " + std::string(PeerStateName(state(rank))));
  }
  link->connection->Send(kMessage, Envelope(options_.rank, static_cast<uint32_t>(rank), type, payload));
  return OkStatus();
}

Status Fabric::Impl::Broadcast(uint16_t type, std::string_view payload) {
  if (payload.size() > kMaxMessageBytes || options_.rank != 0) {
    return Status(Code::kInvalid, "a broadcast of " + std::to_string(payload.size()) + " bytes from rank " +
                                      std::to_string(options_.rank));
  }
  if (phase_ != Phase::kReady) return Status(Code::kUnavailable, "the session is not open");
  SendDown(kMessage, Envelope(0, kEverybody, type, payload));
  LoopBack(type, std::string(payload));
  const auto gone = std::find_if(state_.begin(), state_.end(), Final);
  if (gone == state_.end()) return OkStatus();
  return Status(Code::kUnavailable,
                "rank " + std::to_string(gone - state_.begin()) + " is " + std::string(PeerStateName(*gone)));
}

Status Fabric::Impl::SendToHost(uint16_t type, std::string_view payload) {
  if (phase_ != Phase::kReady || !host_) return Status(Code::kUnavailable, "there is no host process");
  host_->Send(type, payload);
  return OkStatus();
}

void Fabric::Impl::LoopBack(uint16_t type, std::string payload) {
  loop_->Post([this, type, payload = std::move(payload), alive = std::weak_ptr<bool>(alive_)]() mutable {
    if (!alive.expired()) Deliver(options_.rank, type, std::move(payload));
  });
}

void Fabric::Impl::Deliver(int from, uint16_t type, std::string payload) {
  if (phase_ == Phase::kReady && callbacks_.on_message) callbacks_.on_message(from, type, std::move(payload));
}

void Fabric::Impl::SendDown(uint16_t type, std::string_view payload) {
  for (auto& [rank, link] : children_) {
    if (link.connection) link.connection->Send(type, payload);
  }
}

Fabric::Impl::Link* Fabric::Impl::Towards(int rank) {
  const auto branch = branch_.find(rank);
  if (branch != branch_.end()) return &children_.at(branch->second);
  return options_.rank == 0 ? nullptr : &parent_;
}

void Fabric::Impl::LinkFrame(Link* link, uint16_t type, std::string payload) {
  const bool from_parent = link == &parent_;
  switch (type) {
    case kHeartbeat:
      return;
    case kMessage:
      return Route(link, std::move(payload));
    case kNodeReady:
      link->ready = true;
      return CheckReady();
    case kReady:
      if (from_parent && phase_ == Phase::kConnecting) BecomeReady();
      return;
    case kFailed:
      return FailOpen(Code::kUnavailable, payload);
    case kPeer:
      return PeerFrame(from_parent, payload);
    case kLeaving:
      return LinkState(link, PeerState::kLeft, "it has left");
    default:
      return;  // of a later version
  }
}

void Fabric::Impl::Route(Link* from, std::string payload) {
  if (payload.size() < kEnvelopeBytes) return;
  const uint32_t origin = GetWire<uint32_t>(payload, 0), to = GetWire<uint32_t>(payload, 4);
  if (to == kEverybody && from == &parent_) SendDown(kMessage, payload);
  if (to == kEverybody || to == static_cast<uint32_t>(options_.rank)) {
    const uint16_t type = GetWire<uint16_t>(payload, 8);
    return Deliver(static_cast<int>(origin), type, payload.substr(kEnvelopeBytes));
  }
  Link* link = Towards(static_cast<int>(to));
  if (link != nullptr && link != from && link->connection) link->connection->Send(kMessage, payload);
}

// ---- Watching ------------------------------------------------------------------------------------------------------------------------

// Silence is counted in ticks of this loop: one that was stopped for an hour has missed one tick, and blames nobody.
void Fabric::Impl::Tick() {
  const auto check = [this](Link* link) {
    if (!link->connection) return;
    link->connection->Send(kHeartbeat, {});
    link->silent_ticks = link->connection->TakeHeard() ? 0 : link->silent_ticks + 1;
    if (phase_ != Phase::kReady) return;
    const milliseconds silent = link->silent_ticks * options_.heartbeat;
    const std::string why = "nothing was heard from rank " + std::to_string(link->rank) + " for " +
                            std::to_string(silent.count()) + " ms";
    if (silent >= options_.gone_after) {
      link->connection.reset();
      LinkState(link, PeerState::kGone, why);
    } else if (silent >= options_.suspect_after) {
      LinkState(link, PeerState::kSuspect, why);
    } else if (link->silent_ticks == 0) {
      LinkState(link, PeerState::kAlive, "heard again");
    }
  };
  if (options_.rank != 0) check(&parent_);
  for (auto& [rank, link] : children_) check(&link);
}

void Fabric::Impl::LinkState(Link* link, PeerState state, const std::string& why) {
  if (phase_ != Phase::kReady || Final(link->state) || link->state == state) return;
  link->state = state;
  if (state == PeerState::kGone) link->connection.reset();
  for (int rank : link->covers) {
    Update(rank,
           rank == link->rank ? why : "its way leads through rank " + std::to_string(link->rank) + ": " + why,
           link == &parent_ ? Tell::kDown : TellBelow());
  }
}

void Fabric::Impl::PeerFrame(bool from_parent, const std::string& payload) {
  if (payload.size() < 5 || phase_ != Phase::kReady) return;
  const uint32_t rank = GetWire<uint32_t>(payload, 0);
  const auto state = static_cast<PeerState>(GetWire<uint8_t>(payload, 4));
  if (rank >= told_.size() || state > PeerState::kLeft) return;
  if (from_parent) SendDown(kPeer, payload);
  // Of ranks below, this member knows better than those above; of itself as well.
  if (static_cast<int>(rank) == options_.rank || (from_parent && Below(static_cast<int>(rank)))) return;
  told_[rank] = state;
  Update(static_cast<int>(rank), payload.substr(5), from_parent ? Tell::kNobody : TellBelow());
}

// Settles a rank's state from what was told and what its link shows, and tells a change on.
void Fabric::Impl::Update(int rank, const std::string& why, Tell tell) {
  PeerState& known = state_[static_cast<size_t>(rank)];
  PeerState now = told_[static_cast<size_t>(rank)];
  const Link* link = Towards(rank);
  if (link != nullptr && std::find(link->covers.begin(), link->covers.end(), rank) != link->covers.end()) {
    const bool cut_off =
        link->state == PeerState::kLeft && link->rank != rank;  // the rank that led to it has left
    now = std::max(now, cut_off ? PeerState::kGone : link->state);
  }
  if (Final(known) || now == known) return;
  known = now;
  std::string peer;
  PutWire(&peer, static_cast<uint32_t>(rank));
  PutWire(&peer, static_cast<uint8_t>(now));
  peer += why;
  if (tell == Tell::kDown) SendDown(kPeer, peer);
  if (tell == Tell::kUp && parent_.connection) parent_.connection->Send(kPeer, peer);
  if (callbacks_.on_peer) callbacks_.on_peer(rank, now, why);
}

void Fabric::Impl::Leave(std::function<void()> done) {
  phase_ = Phase::kClosed;
  tick_.Stop();
  bound_.Stop();
  dialer_.reset();
  acceptor_.reset();
  std::vector<Connection*> open;
  if (parent_.connection) open.push_back(parent_.connection.get());
  for (auto& [rank, link] : children_) {
    if (link.connection) open.push_back(link.connection.get());
  }
  struct Goodbye {
    size_t left;
    std::function<void()> done;
    std::unique_ptr<Timer> bound;
    void Arrive() {
      if (left > 0 && --left == 0) Finish();
    }
    void Finish() {
      left = 0;
      bound->Stop();
      if (done) std::exchange(done, nullptr)();
    }
  };
  auto goodbye = std::make_shared<Goodbye>(Goodbye{open.size() + 1, std::move(done), nullptr});
  goodbye->bound = std::make_unique<Timer>(loop_, [goodbye = goodbye.get()] { goodbye->Finish(); });
  goodbye->bound->Once(kLeaveBound);
  for (Connection* c : open) {
    c->Send(kLeaving, {});
    c->OnFlushed([goodbye] { goodbye->Arrive(); });
  }
  loop_->Post([goodbye] { goodbye->Arrive(); });
}

// ---- Fabric --------------------------------------------------------------------------------------------------------------------------

Fabric::Fabric(Loop* loop, FabricOptions options, FabricCallbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(callbacks))) {}
Fabric::~Fabric() = default;

Status Fabric::SendTo(int rank, uint16_t type, std::string_view payload) {
  return impl_->SendTo(rank, type, payload);
}
Status Fabric::Broadcast(uint16_t type, std::string_view payload) { return impl_->Broadcast(type, payload); }
Status Fabric::SendToHost(uint16_t type, std::string_view payload) {
  return impl_->SendToHost(type, payload);
}
PeerState Fabric::peer_state(int rank) const { return impl_->state(rank); }
void Fabric::Leave(std::function<void()> done) { impl_->Leave(std::move(done)); }

}  // namespace cairn
