#include "runtime/command/ask.h"

#include <nlohmann/json.hpp>

#include "runtime/control/control_client.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> Exchange(const std::string& dir, const std::string& request,
                             ControlClient::TimePoint deadline) {
  CAIRN_ASSIGN_OR_RETURN(const ControlPoint point, ReadControlFile(dir));
  CAIRN_ASSIGN_OR_RETURN(const auto client, ControlClient::Connect(point, deadline));
  CAIRN_RETURN_IF_ERROR(client->Send(request));
  return client->Receive(deadline);
}

}  // namespace

Result<Json> Ask(const std::string& dir, const Json& request, std::chrono::nanoseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  const Result<std::string> reply =
      Exchange(dir, request.dump(-1, ' ', false, Json::error_handler_t::replace), deadline);
  if (!reply.ok()) {
    const Status& status = reply.status();
    std::string remedy;
    if (status.code() == Code::kNotFound || status.code() == Code::kUnavailable) {
      remedy = "; `cairn why " + dir + "` says how its lives ended";
    } else if (status.code() == Code::kTimeout) {
      remedy = " from the session in " + dir + " (waited " + FormatDuration(bound) +
               "); it may still come, `cairn ls` will show it";
    }
    return Status(status.code() == Code::kInvalid ? Code::kDamage : status.code(), status.message() + remedy);
  }
  Json answer = Json::parse(*reply, nullptr, false);
  if (!answer.is_object())
    return Status(Code::kInternal, "the session in " + dir + " gave no JSON object for an answer: " + *reply);
  return answer;
}

}  // namespace cairn
