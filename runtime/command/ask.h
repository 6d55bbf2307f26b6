// Ask: one question to a live session, by way of its host process. Blocking; one thread.
#ifndef CAIRN_RUNTIME_COMMAND_ASK_H_
#define CAIRN_RUNTIME_COMMAND_ASK_H_

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/base/status.h"

namespace cairn {

// The reply, a JSON object, to the request, another one. `dir` is the run's. kNotFound, kUnavailable: no
// session is live there; kTimeout: it did not answer within `bound`; the messages say what to do.
Result<nlohmann::ordered_json> Ask(const std::string& dir, const nlohmann::ordered_json& request,
                                   std::chrono::nanoseconds bound);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_ASK_H_
