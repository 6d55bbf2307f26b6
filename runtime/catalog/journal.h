// The journal of a run: what its lives have done, one JSON object a line (lives.h).
//
// In a directory all lives append to journal.jsonl. Objects cannot be appended to: there each life keeps the lines that it has written, and puts all
// of them again with each new one, as journal-<epoch>-<part>.jsonl, in parts so that none grows long.
#ifndef CAIRN_RUNTIME_CATALOG_JOURNAL_H_
#define CAIRN_RUNTIME_CATALOG_JOURNAL_H_

#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

// All lines of all lives, those of one life in its order; "" when nothing was ever written. Writing is RunDirectory::Journal.
Result<std::string> ReadJournal(const RunDirectory& dir);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_JOURNAL_H_
