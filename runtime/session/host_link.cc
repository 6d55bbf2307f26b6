#include "runtime/session/host_link.h"

#include <charconv>

namespace cairn {

std::optional<HolderQuery> QueryAbout(const Identity& holder, const std::string& cluster) {
  if (holder.cluster != cluster) return std::nullopt;
  const auto number = [](const std::string& text, uint32_t* value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && end == text.data() + text.size();
  };
  HolderQuery query;
  if (!number(holder.job, &query.job) || !number(holder.step, &query.step)) return std::nullopt;
  query.restart = static_cast<int>(holder.restart);
  return query;
}

template <typename Query, typename Reply>
void HostLink::Ask(Query query, std::chrono::milliseconds bound,
                   std::function<void(std::optional<Reply>)> done) {
  const uint64_t id = query.id = next_id_++;
  Pending& pending = pending_[id];
  pending.done = [done = std::move(done)](const std::string* payload) {
    if (payload == nullptr) return done(std::nullopt);
    auto reply = DecodeHostMessage<Reply>(*payload);
    done(reply.ok() ? std::optional<Reply>(*std::move(reply)) : std::nullopt);
  };
  pending.bound = std::make_unique<Timer>(loop_, [this, id] { Answer(id, nullptr); });
  const bool sent = fabric_->SendToHost(Query::kType, EncodeHostMessage(query)).ok();
  pending.bound->Once(sent ? bound : std::chrono::milliseconds(0));
}

void HostLink::AskCause(std::chrono::milliseconds notice,
                        std::function<void(std::optional<CauseReply>)> done) {
  Ask<CauseQuery, CauseReply>({.notice_ms = notice.count()}, std::chrono::milliseconds(3000),
                              std::move(done));
}

void HostLink::AskHolder(HolderQuery query, std::function<void(std::optional<HolderReply>)> done) {
  Ask<HolderQuery, HolderReply>(query, std::chrono::milliseconds(3000), std::move(done));
}

void HostLink::AskRequeue(std::function<void(std::optional<RequeueReply>)> done) {
  Ask<RequeueQuery, RequeueReply>({}, std::chrono::milliseconds(15000), std::move(done));
}

bool HostLink::OnHost(uint16_t type, const std::string& payload) {
  uint64_t id = 0;
  if (type == kHostCauseReply) {
    if (auto m = DecodeHostMessage<CauseReply>(payload); m.ok()) id = m->id;
  } else if (type == kHostHolderReply) {
    if (auto m = DecodeHostMessage<HolderReply>(payload); m.ok()) id = m->id;
  } else if (type == kHostRequeueReply) {
    if (auto m = DecodeHostMessage<RequeueReply>(payload); m.ok()) id = m->id;
  } else {
    return false;
  }
  Answer(id, &payload);
  return true;
}

void HostLink::Answer(uint64_t id, const std::string* payload) {
  const auto it = pending_.find(id);
  if (it == pending_.end()) return;  // it came too late
  auto done = std::move(it->second.done);
  pending_.erase(it);
  done(payload);
}

}  // namespace cairn
