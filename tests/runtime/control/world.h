// World: the members of a session in one process, each with a loop of its own, and the host's reception, on real sockets.
#ifndef CAIRN_TESTS_RUNTIME_CONTROL_WORLD_H_
#define CAIRN_TESTS_RUNTIME_CONTROL_WORLD_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/fabric.h"
#include "runtime/control/loop.h"
#include "runtime/host/reception.h"

namespace cairn {

inline constexpr std::chrono::seconds kPatience{20};  // a condition that does not hold by then fails the test

struct Event {
  enum Kind { kReady, kMessage, kPeer, kHost, kRefused } kind;
  int rank = -1;
  uint16_t type = 0;
  std::string text;  // the payload, the state's name or the line
  Status status;
};

// One member. Everything that it is told is kept in order.
class Member {
 public:
  explicit Member(FabricOptions options) : loop_(std::move(*Loop::Start("member"))) {
    FabricCallbacks callbacks;
    callbacks.on_ready = [this](Status s) { Add({Event::kReady, -1, 0, s.message(), s}); };
    callbacks.on_message = [this](int from, uint16_t type, std::string p) {
      Add({Event::kMessage, from, type, std::move(p), {}});
    };
    callbacks.on_peer = [this](int rank, PeerState s, const std::string&) {
      Add({Event::kPeer, rank, 0, std::string(PeerStateName(s)), {}});
    };
    callbacks.on_host = [this](uint16_t type, std::string p) {
      Add({Event::kHost, -1, type, std::move(p), {}});
    };
    callbacks.on_refused = [this](const std::string& line) { Add({Event::kRefused, -1, 0, line, {}}); };
    loop_->Run(
        [&] { fabric_ = std::make_unique<Fabric>(loop_.get(), std::move(options), std::move(callbacks)); });
  }
  ~Member() { Die(); }

  // As a killed process: the connections end without a word.
  void Die() {
    if (loop_) loop_->Run([&] { fabric_.reset(); });
    loop_.reset();
  }

  // As a stopped process: the loop does nothing until Continue.
  void Stop() {
    stopped_ = std::promise<void>();
    loop_->Post([f = stopped_.get_future().share()] { f.wait(); });
  }
  void Continue() { stopped_.set_value(); }

  Status Do(const std::function<Status(Fabric*)>& fn) {
    Status status;
    loop_->Run([&] { status = fn(fabric_.get()); });
    return status;
  }

  void Leave() {
    std::promise<void> left;
    loop_->Run([&] { fabric_->Leave([&] { left.set_value(); }); });
    left.get_future().get();
    loop_->Run([] {});  // set_value has returned
  }

  // The first event, from the next_ one on, that fits; what comes before it is passed over. Nothing when kPatience is over.
  std::optional<Event> Await(const std::function<bool(const Event&)>& fits) {
    std::unique_lock lock(mutex_);
    std::optional<Event> found;
    changed_.wait_for(lock, kPatience, [&] {
      while (next_ < events_.size() && !found) {
        if (fits(events_[next_])) found = events_[next_];
        ++next_;
      }
      return found.has_value();
    });
    return found;
  }
  std::optional<Event> AwaitReady() {
    return Await([](const Event& e) { return e.kind == Event::kReady; });
  }
  bool AwaitMessage(int from, uint16_t type, const std::string& text) {
    return Await([&](const Event& e) {
             return e.kind == Event::kMessage && e.rank == from && e.type == type && e.text == text;
           })
        .has_value();
  }
  bool AwaitPeer(int rank, const std::string& state) {
    return Await([&](const Event& e) { return e.kind == Event::kPeer && e.rank == rank && e.text == state; })
        .has_value();
  }

  std::vector<Event> All() {
    std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  void Add(Event e) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(e));
    changed_.notify_all();
  }

  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Fabric> fabric_;
  std::promise<void> stopped_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  size_t next_ = 0;
};

// The host's reception for the life 12.0.1.
class Host {
 public:
  Host() : token(Secret::Random()), loop_(std::move(*Loop::Start("host"))) {
    Socket listener = std::move(*ListenTcp("127.0.0.1", 0, 0));
    port = LocalPort(listener);
    ReceptionEvents events;
    events.on_leader = [this](const std::string& session, uint16_t type, std::string payload) {
      reception_->SendToLeader(session, type, "echo " + payload);
    };
    events.on_refused = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      refused_.push_back(line);
      changed_.notify_all();
    };
    loop_->Run([&] {
      std::vector<Socket> listeners;
      listeners.push_back(std::move(listener));
      reception_ = std::make_unique<Reception>(
          loop_.get(), std::move(listeners),
          HandshakeParty{Role::kHost, Role::kMember, "12.0.1", "", 0, 0, token}, std::move(events));
    });
  }
  ~Host() {
    loop_->Run([&] { reception_.reset(); });
  }

  FabricOptions OptionsFor(int rank, int world_size, const std::string& node) const {
    FabricOptions o;
    o.rank = rank;
    o.world_size = world_size;
    o.node = node;
    o.key = "12.0.1";
    o.token = token;
    o.rendezvous = "127.0.0.1:" + std::to_string(port);
    o.heartbeat = std::chrono::milliseconds(50);
    o.suspect_after = std::chrono::milliseconds(500);
    o.gone_after = std::chrono::seconds(60);
    return o;
  }

  // The line of the first refusal whose text holds `part`.
  std::string AwaitRefused(const std::string& part) {
    std::unique_lock lock(mutex_);
    std::string found;
    changed_.wait_for(lock, kPatience, [&] {
      for (const std::string& line : refused_) {
        if (line.find(part) != std::string::npos) found = line;
      }
      return !found.empty();
    });
    return found;
  }
  std::vector<std::string> refused() {
    std::lock_guard lock(mutex_);
    return refused_;
  }

  const Secret token;
  uint16_t port = 0;

 private:
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Reception> reception_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> refused_;
};

// Two nodes of three ranks each: n1 has 0, 1, 2; n2 has 3, 4, 5, led by 3.
struct World {
  Host host;
  std::vector<std::unique_ptr<Member>> members;

  static std::string NodeOf(int rank) { return rank < 3 ? "n1" : "n2"; }
  FabricOptions Options(int rank) const { return host.OptionsFor(rank, 6, NodeOf(rank)); }

  explicit World(const std::function<void(FabricOptions*)>& change = {}) {
    for (int r = 0; r < 6; ++r) {
      FabricOptions o = Options(r);
      if (change) change(&o);
      members.push_back(std::make_unique<Member>(o));
    }
  }
  Member& operator[](int rank) { return *members[static_cast<size_t>(rank)]; }
  bool AwaitReady() {
    for (auto& m : members) {
      const auto ready = m->AwaitReady();
      if (!ready || !ready->status.ok()) return false;
    }
    return true;
  }
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_CONTROL_WORLD_H_
