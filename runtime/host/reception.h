// Reception: the host process's door. Brings the members of each session together, keeps the line to each session's leader, and relays the
// requests of the `cairn` command to it. Loop thread only.
#ifndef CAIRN_RUNTIME_HOST_RECEPTION_H_
#define CAIRN_RUNTIME_HOST_RECEPTION_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/control/acceptor.h"
#include "runtime/control/rendezvous.h"

namespace cairn {

struct ReceptionEvents {
  std::function<void(const std::string& session)> on_opened;  // all members are there
  // A message of a session's leader, except replies to the command's requests.
  std::function<void(const std::string& session, uint16_t type, std::string payload)> on_leader;
  std::function<void(const std::string& line)> on_refused;  // once for each kind of refusal
};

class Reception {
 public:
  // `party`: role kHost, the key and the token; the session is ignored: any is served.
  Reception(Loop* loop, std::vector<Socket> listeners, HandshakeParty party, ReceptionEvents events);
  ~Reception();

  // Dropped when the session's leader is not there (any more).
  void SendToLeader(const std::string& session, uint16_t type, std::string_view payload);

 private:
  struct Session {
    RendezvousTable table;
    std::map<int, std::unique_ptr<Connection>> members;  // until the session is open; then the leader's alone
    std::unique_ptr<Timer> bound;
    bool open = false;
    std::string failed;  // why it will not form, or ""
  };
  struct Client {  // the `cairn` command
    std::unique_ptr<Connection> connection;
    std::string session;
  };

  void Accepted(std::unique_ptr<Connection> connection);
  void Register(std::unique_ptr<Connection> connection, const std::string& payload);
  void Complete(const std::string& name, Session* session);
  void Fail(Session* session, const std::string& why);
  void MemberFrame(const std::string& session, int rank, uint16_t type, std::string payload);
  void MemberClosed(const std::string& session, int rank);
  void ClientFrame(uint64_t id, std::string payload);
  void ClientReply(const std::string& payload);

  Loop* const loop_;
  const ReceptionEvents events_;
  std::map<std::string, Session> sessions_;
  std::list<std::unique_ptr<Connection>> strangers_;  // proven members that have not registered yet
  std::map<uint64_t, Client> clients_;
  uint64_t next_client_ = 1;
  Acceptor acceptor_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_RECEPTION_H_
