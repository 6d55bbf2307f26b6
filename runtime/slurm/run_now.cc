#include "runtime/slurm/run_now.h"

#include <future>
#include <optional>

#include "runtime/control/loop.h"
#include "runtime/slurm/command.h"

namespace cairn {

Result<std::string> RunNow(std::vector<std::string> argv, std::chrono::milliseconds bound) {
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Loop> loop, Loop::Start("cairn-run"));
  std::promise<Result<std::string>> promise;
  std::optional<CommandRunner> runner;
  loop->Run([&] {
    runner.emplace(loop.get());
    runner->Run(std::move(argv), bound,
                [&](Result<std::string> output) { promise.set_value(std::move(output)); });
  });
  Result<std::string> output = promise.get_future().get();
  loop->Run([&] { runner.reset(); });
  return output;
}

}  // namespace cairn
