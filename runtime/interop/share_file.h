// ShareFile: a file once more, under another name, without its bytes where the file system can do that.
#ifndef CAIRN_RUNTIME_INTEROP_SHARE_FILE_H_
#define CAIRN_RUNTIME_INTEROP_SHARE_FILE_H_

#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

// How a file came to be there twice; the later, the worse.
enum class Sharing { kReflink, kHardLink, kCopy };
std::string_view SharingName(Sharing sharing);  // "reflink", "hard link", "copy"

// Makes `to`, which must not be there: as a reflink (blocks are shared until one side changes), else a hard link (Cairn never writes into a file of a
// checkpoint), else a copy. Durable but for its name. Blocking I/O.
Result<Sharing> ShareFile(const std::string& from, const std::string& to);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_SHARE_FILE_H_
