// Acceptor: the door of a listening process. Takes connections, lets them prove who they are, and hands the proven ones on; whoever else
// knocks changes nothing. Loop thread only.
//
// Bounds: a connection has 5 s and some 600 bytes to prove itself; 256 may be at it at once. Then the oldest that has not even said hello
// in half a second gives way to the next one; without such a one, as when thousands of ranks start together, the next ones wait in the
// listener's queue.
// Refusals are counted by kind, and each kind is reported once.
#ifndef CAIRN_RUNTIME_CONTROL_ACCEPTOR_H_
#define CAIRN_RUNTIME_CONTROL_ACCEPTOR_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/connection.h"

namespace cairn {

class Acceptor {
 public:
  using OnAccepted = std::function<void(std::unique_ptr<Connection>)>;
  using OnRefused = std::function<void(const std::string& line)>;

  // `party`: this end; `accepts`: the roles that may come.
  Acceptor(Loop* loop, std::vector<Socket> listeners, HandshakeParty party, std::vector<Role> accepts,
           OnAccepted on_accepted, OnRefused on_refused);
  ~Acceptor();

  uint64_t refused(Refusal kind) const { return refused_[static_cast<size_t>(kind)]; }

 private:
  struct Door {
    Socket socket;
    std::unique_ptr<FdWatcher> watcher;
  };
  struct Guest {
    std::unique_ptr<Connection> connection;
    std::unique_ptr<Timer> bound;
    std::chrono::steady_clock::time_point since;
  };

  void Watch();
  void Pause();
  void Accept(int listener);
  void Admit(std::list<Guest>::iterator guest);
  void Dismiss(std::list<Guest>::iterator guest);
  void Refuse(std::list<Guest>::iterator guest, Refusal kind, const std::string& why);
  void Count(Refusal kind, const std::string& why);

  Loop* const loop_;
  const HandshakeParty party_;
  const std::vector<Role> accepts_;
  const OnAccepted on_accepted_;
  const OnRefused on_refused_;
  std::vector<Door> doors_;
  std::list<Guest> guests_;  // oldest first
  Timer reopen_;             // after a pause
  bool watching_ = true;
  std::array<uint64_t, static_cast<size_t>(Refusal::kTooMany) + 1> refused_{};
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_ACCEPTOR_H_
