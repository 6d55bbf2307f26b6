// NewerVersion: what a decoder says of a file that a later Cairn wrote: kMismatch, never damage, since the file is good for others.
//
// A decoder may say so only of a file whose checksum holds, so that a flipped bit in the version is not taken for a version. What each format
// keeps in all versions for that is in docs/design/formats.md.
#ifndef CAIRN_RUNTIME_FORMATS_NEWER_VERSION_H_
#define CAIRN_RUNTIME_FORMATS_NEWER_VERSION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

inline Status NewerVersion(std::string_view what, uint64_t version, uint64_t known) {
  return {Code::kMismatch, std::string(what) + ": version " + std::to_string(version) +
                               " was written by a newer Cairn, this one reads up to " +
                               std::to_string(known) + ": update this one"};
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_NEWER_VERSION_H_
