#include "runtime/host/reception.h"

#include <chrono>
#include <utility>

#include "runtime/control/control_frame.h"
#include "runtime/host/host_protocol.h"

namespace cairn {

Reception::Reception(Loop* loop, std::vector<Socket> listeners, HandshakeParty party, ReceptionEvents events)
    : loop_(loop),
      events_(std::move(events)),
      acceptor_(
          loop, std::move(listeners), std::move(party), {Role::kMember, Role::kControl},
          [this](std::unique_ptr<Connection> c) { Accepted(std::move(c)); }, events_.on_refused) {}

Reception::~Reception() = default;

void Reception::Accepted(std::unique_ptr<Connection> connection) {
  ConnectionEvents events;
  if (connection->handshake().peer_role() == Role::kControl) {
    const uint64_t id = next_client_++;
    events.on_frame = [this, id](uint16_t type, std::string payload) {
      if (type == kControlRequestFrame) ClientFrame(id, std::move(payload));
    };
    events.on_close = [this, id](const Status&) { clients_.erase(id); };
    connection->SetEvents(std::move(events));
    std::string session = connection->handshake().session();
    clients_[id] = {std::move(connection), std::move(session)};
    return;
  }
  const auto stranger = strangers_.insert(strangers_.end(), std::move(connection));
  events.on_frame = [this, stranger](uint16_t type, std::string payload) {
    if (type != kRendezvousRegister) return;
    auto member = std::move(*stranger);
    strangers_.erase(stranger);
    Register(std::move(member), payload);
  };
  events.on_close = [this, stranger](const Status&) { strangers_.erase(stranger); };
  (*stranger)->SetEvents(std::move(events));
}

void Reception::Register(std::unique_ptr<Connection> connection, const std::string& payload) {
  const std::string name = connection->handshake().session();
  Session& session = sessions_[name];
  auto registration = DecodeRegistration(payload);
  Status status = registration.status();
  int rank = -1;
  std::chrono::milliseconds bound{0};
  if (registration.ok()) {
    rank = registration->rank;
    bound = std::chrono::milliseconds(registration->open_bound_ms);
    if (!session.failed.empty()) {
      status = Status(Code::kTimeout, session.failed);
    } else if (session.open) {
      status = Status(Code::kExists,
                      "session " + name + " of this step is open already: a session's name is used once");
    } else {
      status = session.table.Add(*std::move(registration));
    }
  }
  if (!status.ok()) {
    // With another world size this session can never be complete: the others hear why now, and do not wait for the bound.
    if (status.code() == Code::kInvalid && !session.open && session.failed.empty())
      Fail(&session, status.message());
    // The connection is kept until the member closes it, so that the text arrives.
    const auto refused = strangers_.insert(strangers_.end(), std::move(connection));
    ConnectionEvents events;
    events.on_close = [this, refused](const Status&) { strangers_.erase(refused); };
    (*refused)->SetEvents(std::move(events));
    (*refused)->Send(kRendezvousFailed, status.message());
    return;
  }
  ConnectionEvents events;
  events.on_frame = [this, name, rank](uint16_t type, std::string message) {
    MemberFrame(name, rank, type, std::move(message));
  };
  events.on_close = [this, name, rank](const Status&) { MemberClosed(name, rank); };
  connection->SetEvents(std::move(events));
  session.members[rank] = std::move(connection);
  if (!session.bound) {
    session.bound = std::make_unique<Timer>(loop_, [this, s = &session] { Fail(s, s->table.Missing()); });
    session.bound->Once(bound);
  }
  if (session.table.complete()) Complete(name, &session);
}

void Reception::Complete(const std::string& name, Session* session) {
  session->bound->Stop();
  session->open = true;
  for (const auto& [rank, connection] : session->members) {
    connection->Send(kRendezvousAssign, EncodeAssignment(session->table.Assign(rank)));
  }
  session->table = {};
  if (events_.on_opened) events_.on_opened(name);
}

void Reception::Fail(Session* session, const std::string& why) {
  if (session->bound) session->bound->Stop();
  session->failed = why;
  for (const auto& [rank, connection] : session->members) connection->Send(kRendezvousFailed, why);
}

void Reception::MemberFrame(const std::string& session, int rank, uint16_t type, std::string payload) {
  if (rank != 0 || !sessions_.at(session).open) return;  // only the leader has anything to say
  if (type == kHostControlReply) return ClientReply(payload);
  if (events_.on_leader) events_.on_leader(session, type, std::move(payload));
}

void Reception::MemberClosed(const std::string& session, int rank) {
  Session& s = sessions_.at(session);
  s.members.erase(rank);
  if (!s.open) s.table.Remove(rank);
  if (!s.open || rank != 0) return;
  // Whoever waits for the leader's answer waits in vain.
  std::erase_if(clients_, [&](const auto& c) { return c.second.session == session; });
}

void Reception::SendToLeader(const std::string& session, uint16_t type, std::string_view payload) {
  const auto s = sessions_.find(session);
  if (s == sessions_.end() || !s->second.open) return;
  const auto leader = s->second.members.find(0);
  if (leader != s->second.members.end()) leader->second->Send(type, payload);
}

void Reception::ClientFrame(uint64_t id, std::string payload) {
  const std::string& session = clients_.at(id).session;
  const auto s = sessions_.find(session);
  if (s == sessions_.end() || !s->second.open || !s->second.members.contains(0)) {
    clients_.erase(id);  // the end of the connection says that there is no leader
    return;
  }
  SendToLeader(session, kHostControlRequest, EncodeHostMessage(ControlRequest{id, std::move(payload)}));
}

void Reception::ClientReply(const std::string& payload) {
  const auto reply = DecodeHostMessage<ControlReply>(payload);
  if (!reply.ok()) return;
  const auto client = clients_.find(reply->id);
  if (client != clients_.end()) client->second.connection->Send(kControlReplyFrame, reply->body);
}

}  // namespace cairn
