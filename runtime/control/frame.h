// Frame: the unit of the control plane's connections. Pure: bytes in, frames out. Not thread-safe.
//
//     u32 length      bytes of the payload
//     u16 type        meaning of the payload: the reader's business
//     u16 version     kFrameVersion
//     u64 sequence    0, 1, 2 … per direction of a connection
//     payload
//     16 bytes MAC    BLAKE2b over all of the above, keyed by the direction's session key (handshake.h)
//
// All numbers are little-endian. A frame that was changed, replayed, dropped or reordered fails the MAC or
// the sequence; the connection is over then.
#ifndef CAIRN_RUNTIME_CONTROL_FRAME_H_
#define CAIRN_RUNTIME_CONTROL_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/secret.h"

namespace cairn {

inline constexpr uint16_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr size_t kFrameMacBytes = 16;
inline constexpr size_t kMaxFramePayloadBytes = size_t{65} << 20;  // a layout of 64 MiB and its envelope

struct Frame {
  uint16_t type = 0;
  std::string payload;
};

class FrameEncoder {
 public:
  explicit FrameEncoder(const Secret& key) : key_(key) {}

  // The bytes of the next frame. payload.size() ≤ kMaxFramePayloadBytes.
  std::string Encode(uint16_t type, std::string_view payload);

 private:
  const Secret key_;
  uint64_t sequence_ = 0;
};

class FrameDecoder {
 public:
  explicit FrameDecoder(const Secret& key, size_t max_payload_bytes = kMaxFramePayloadBytes)
      : key_(key), max_payload_bytes_(max_payload_bytes) {}

  // Takes the next bytes of the stream, in chunks of any size, and appends the frames that they complete.
  // kInvalid: the peer broke the protocol; nothing more is decoded, every later call fails as well.
  Status Feed(std::string_view bytes, std::vector<Frame>* frames);

 private:
  const Secret key_;
  const size_t max_payload_bytes_;
  uint64_t sequence_ = 0;
  std::string buffer_;  // the bytes of an incomplete frame
  Status failed_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_FRAME_H_
