#include "runtime/control/frame.h"

#include <cassert>
#include <cstring>

#include "runtime/control/wire.h"

namespace cairn {
namespace {

// Beyond this, the memory of a large frame is given back once it has been decoded.
constexpr size_t kKeptBufferBytes = size_t{1} << 20;

std::string_view View(const Mac& mac) { return {reinterpret_cast<const char*>(mac.data()), mac.size()}; }

}  // namespace

std::string FrameEncoder::Encode(uint16_t type, std::string_view payload) {
  assert(payload.size() <= kMaxFramePayloadBytes);
  std::string frame;
  frame.reserve(kFrameHeaderBytes + payload.size() + kFrameMacBytes);
  PutWire(&frame, static_cast<uint32_t>(payload.size()));
  PutWire(&frame, type);
  PutWire(&frame, kFrameVersion);
  PutWire(&frame, sequence_++);
  frame.append(payload);
  const Mac mac = ComputeMac(key_, frame, {});
  return frame.append(View(mac));
}

Status FrameDecoder::Feed(std::string_view bytes, std::vector<Frame>* frames) {
  CAIRN_RETURN_IF_ERROR(failed_);
  buffer_.append(bytes);
  size_t at = 0;
  while (buffer_.size() - at >= kFrameHeaderBytes) {
    const std::string_view header(buffer_.data() + at, kFrameHeaderBytes);
    const size_t length = GetWire<uint32_t>(header, 0);
    const uint16_t version = GetWire<uint16_t>(header, 6);
    const uint64_t sequence = GetWire<uint64_t>(header, 8);
    // Checked before the payload is awaited, so that a forged length neither stalls the connection nor fills the memory.
    if (length > max_payload_bytes_) {
      failed_ = Status(Code::kInvalid, "a frame of " + std::to_string(length) +
                                           " bytes is larger than the limit of " +
                                           std::to_string(max_payload_bytes_));
    } else if (version != kFrameVersion) {
      failed_ = Status(Code::kInvalid, "a frame has version " + std::to_string(version) +
                                           ", this program speaks " + std::to_string(kFrameVersion));
    } else if (sequence != sequence_) {
      failed_ = Status(Code::kInvalid, "frame " + std::to_string(sequence) + " came where " +
                                           std::to_string(sequence_) + " was due");
    }
    CAIRN_RETURN_IF_ERROR(failed_);
    if (buffer_.size() - at < kFrameHeaderBytes + length + kFrameMacBytes) break;
    const std::string_view payload(buffer_.data() + at + kFrameHeaderBytes, length);
    Mac mac;
    std::memcpy(mac.data(), payload.data() + length, mac.size());
    if (!SameMac(mac, ComputeMac(key_, header, payload))) {
      failed_ =
          Status(Code::kInvalid, "frame " + std::to_string(sequence) + " does not carry its sender's MAC");
      return failed_;
    }
    frames->push_back({GetWire<uint16_t>(header, 4), std::string(payload)});
    ++sequence_;
    at += kFrameHeaderBytes + length + kFrameMacBytes;
  }
  buffer_.erase(0, at);
  if (buffer_.empty() && buffer_.capacity() > kKeptBufferBytes) buffer_ = {};
  return OkStatus();
}

}  // namespace cairn
