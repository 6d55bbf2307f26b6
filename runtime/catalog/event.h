// Events: the lines of a run's journal (journal.h), the log of all that happened to the run, over all its lives.
//
// One JSON object a line: "event", "time" and "epoch" (the life), then the event's own fields. docs/reference/journal.md lists all events and
// fields; names and meanings stay, fields are only ever added. The journal is a courtesy to people and their tools: what it does not tell is
// not known, and no operation fails for it. `cairn why` and `cairn report` read it (lives.h, chronicle.h).
#ifndef CAIRN_RUNTIME_CATALOG_EVENT_H_
#define CAIRN_RUNTIME_CATALOG_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

using JournalFields = std::vector<std::pair<std::string, std::string>>;  // name → value as JSON text

std::string JsonText(std::string_view text);  // quoted; what is no UTF-8 is replaced

// Milliseconds since 1970 of a line's time, whose form is "2026-03-01T12:00:00.250Z", or without the fraction; nothing when it is neither.
std::optional<int64_t> ParseEventTime(const std::string& text);

// Appends one line; only a life that owns the directory gives its epoch, everybody else 0. `time`: "" = now.
Status AppendEvent(const RunDirectory& dir, std::string_view event, uint32_t epoch,
                   const JournalFields& fields, std::string_view time = "");

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_EVENT_H_
