#include "runtime/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace cairn {

struct Log::Impl {
  std::shared_ptr<spdlog::logger> logger;
};

namespace {

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
    try {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(std::string(setting));
    } catch (const spdlog::spdlog_ex& e) {
      fault = e.what();
    }
  }
  const bool file_open = sink != nullptr;
  if (!file_open) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  impl_->logger = std::make_shared<spdlog::logger>("cairn", std::move(sink));
  const std::string tag = prefix.empty() ? "cairn: " : "cairn: " + std::string(prefix) + ": ";
  impl_->logger->set_pattern(file_open ? "%Y-%m-%dT%H:%M:%S.%e " + tag + "%v" : tag + "%v");
  impl_->logger->flush_on(spdlog::level::debug);
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
