// MetricsServer: answers GET /metrics over plain HTTP, one request after the other, until the process is ended. Nothing that it says is secret,
// and nothing can be asked of it; who may reach it is a matter of the address.
#ifndef CAIRN_RUNTIME_COMMAND_METRICS_SERVER_H_
#define CAIRN_RUNTIME_COMMAND_METRICS_SERVER_H_

#include <functional>
#include <string>

#include "planner/base/status.h"

namespace cairn {

// `address`: "127.0.0.1:9463"; port 0 = any. `ready` is told the port. `page` makes the answer. Returns only when it cannot listen.
Status ServeMetrics(const std::string& address, const std::function<void(int port)>& ready,
                    const std::function<Result<std::string>()>& page);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_METRICS_SERVER_H_
