#include "runtime/log/log.h"

#include <fcntl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <utility>

#include "runtime/io/file.h"
#include "runtime/log/line_writer.h"

namespace cairn {

struct Log::Impl {
  std::shared_ptr<spdlog::logger> logger;
};

namespace {

class LineSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  template <typename Fd>
  explicit LineSink(Fd fd) : writer_(std::move(fd)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.Write(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  LineWriter writer_;
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
  }
  return spdlog::level::info;
}

}  // namespace

Log::Log(std::string_view setting, std::string_view prefix) : impl_(std::make_unique<Impl>()) {
  const bool to_file = setting != "quiet" && setting != "info" && setting != "debug" && !setting.empty();
  std::string fault;
  spdlog::sink_ptr sink;
  if (to_file) {
    Result<UniqueFd> file = OpenFile(std::string(setting), O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file.ok()) {
      sink = std::make_shared<LineSink>(*std::move(file));
    } else {
      fault = file.status().message();
    }
  }
  const bool file_open = sink != nullptr;
  if (!file_open) sink = std::make_shared<LineSink>(STDERR_FILENO);
  impl_->logger = std::make_shared<spdlog::logger>("cairn", std::move(sink));
  const std::string tag = prefix.empty() ? "cairn: " : "cairn: " + std::string(prefix) + ": ";
  impl_->logger->set_pattern(file_open ? "%Y-%m-%dT%H:%M:%S.%e " + tag + "%v" : tag + "%v");
  const bool debug = setting == "debug" || file_open;
  impl_->logger->set_level(setting == "quiet" ? spdlog::level::warn
                           : debug            ? spdlog::level::debug
                                              : spdlog::level::info);
  if (!fault.empty()) Warn("CAIRN_LOG=", setting, " cannot be written (", fault, "); logging to stderr");
}

Log::~Log() = default;

bool Log::Enabled(LogLevel level) const { return impl_->logger->should_log(ToSpdlog(level)); }

void Log::WriteLine(LogLevel level, const std::string& line) {
  impl_->logger->log(ToSpdlog(level), "{}", line);
}

}  // namespace cairn
