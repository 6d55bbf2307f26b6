// DurablePlace: a sealed text in the local tier of each node that says where the images there would have become durable, for who drains them
// when all processes of the life are gone (left_drain.h). It lies beside the layout. docs/design/staging.md, section 5.
#ifndef CAIRN_RUNTIME_SESSION_DURABLE_PLACE_H_
#define CAIRN_RUNTIME_SESSION_DURABLE_PLACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/io/file.h"

namespace cairn {

struct DurablePlace {
  std::string dir;                              // of the run, absolute
  FileMode mode;                                // of durable files; nothing: by the umask
  uint32_t umask = 0;                           // of the process that wrote this
  std::map<std::string, std::string> settings;  // Manifest::settings

  friend bool operator==(const DurablePlace&, const DurablePlace&) = default;
};

// This process's umask, read without changing it for a moment. 077 where it cannot be read.
uint32_t CurrentUmask();

Result<std::string> EncodeDurablePlace(const DurablePlace& destination);
Result<DurablePlace> DecodeDurablePlace(std::string_view text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_DURABLE_PLACE_H_
