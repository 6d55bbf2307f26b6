// Log: the lines that a user reads, "cairn: …", on stderr or in the file that CAIRN_LOG names.
//
// One line on the leader per event (Info), per-rank detail at Debug, what needs the user's attention at Warn. Any thread may log; nobody
// stands still with an output that does (line_writer.h). The program's own spdlog registry and default logger, if it has any, are never touched.
#ifndef CAIRN_RUNTIME_LOG_LOG_H_
#define CAIRN_RUNTIME_LOG_LOG_H_

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace cairn {

enum class LogLevel { kDebug, kInfo, kWarn };

class Log {
 public:
  // `setting` as in CAIRN_LOG: quiet (warnings only), info, debug, or a file that takes everything. `prefix` ("" on the leader, "rank 3" on
  // others) stands after "cairn: ". A file that cannot be opened is told on stderr, which is then used.
  Log(std::string_view setting, std::string_view prefix);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  template <typename... Parts>
  void Debug(const Parts&... parts) {
    Write(LogLevel::kDebug, parts...);
  }
  template <typename... Parts>
  void Info(const Parts&... parts) {
    Write(LogLevel::kInfo, parts...);
  }
  template <typename... Parts>
  void Warn(const Parts&... parts) {
    Write(LogLevel::kWarn, parts...);
  }

 private:
  template <typename... Parts>
  void Write(LogLevel level, const Parts&... parts) {
    if (!Enabled(level)) return;
    std::ostringstream line;
    (line << ... << parts);
    WriteLine(level, line.str());
  }
  bool Enabled(LogLevel level) const;
  void WriteLine(LogLevel level, const std::string& line);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_LOG_LOG_H_
