#include "runtime/staging/block_writer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "runtime/io/hash.h"
#include "runtime/staging/mapping.h"

namespace cairn {

void BlockWriter::Run(bool gently) {
  const auto engine = options_.make_engine();
  control_.SetWriter(engine->name());
  sent_.resize(std::min(static_cast<size_t>(engine->depth()), options_.places));
  free_.clear();
  for (size_t place = 0; place < sent_.size(); ++place) free_.push_back(place);
  for (;;) {
    if (failure_.ok() && control_.cancelled()) failure_ = Status(Code::kCancelled, "cancelled");
    const bool more = !done() && !(gently && control_.hurried());
    if (!more && engine->in_flight() == 0) return;
    if (!more || free_.empty()) {
      Take(engine->Wait(), *engine);
      continue;
    }
    if (gently && !ItsTurn(*engine)) continue;
    SendNext(*engine);
    while (const auto finished = engine->Poll()) Take(*finished, *engine);
  }
}

// Whether the next block may be written now. If not, waits for its turn, but first for what is in flight.
bool BlockWriter::ItsTurn(WriteEngine& engine) {
  const auto now = std::chrono::steady_clock::now();
  if (!turn_) turn_ = pace_.Take(Bytes(shard_, block_), now);
  if (*turn_ > now && engine.in_flight() > 0) {
    Take(engine.Wait(), engine);
    return false;
  }
  control_.SleepUntil(*turn_);
  if (control_.cancelled() || control_.hurried()) return false;
  turn_.reset();
  return true;
}

void BlockWriter::SendNext(WriteEngine& engine) {
  const size_t place = free_.back();
  free_.pop_back();
  const std::byte* const content = options_.content(shard_, block_, place);
  ShardFile& shard = shards_[shard_];
  shard.sums.blocks[block_] = Hash128Of(std::span(content, Bytes(shard_, block_)));
  sent_[place] = {shard_, block_, content};
  Send(place, engine);
  if (++block_ < shard.sums.blocks.size()) return;
  block_ = 0;
  ++shard_;
}

void BlockWriter::Send(size_t place, WriteEngine& engine) {
  Sent& sent = sent_[place];
  const ShardFile& shard = shards_[sent.shard];
  sent.direct = shard.direct;
  const size_t bytes = Bytes(sent.shard, sent.block);
  engine.Submit({shard.fd.get(),
                 {sent.content, sent.direct ? WholePages(bytes) : bytes},
                 sent.block * kBlockBytes,
                 place});
}

void BlockWriter::Take(const BlockDone& finished, WriteEngine& engine) {
  const size_t place = finished.tag;
  const Sent& sent = sent_[place];
  ShardFile& shard = shards_[sent.shard];
  if (finished.error == EINVAL && sent.direct && SetDirect(shard.fd.get(), false)) {
    shard.direct = false;
    return Send(place, engine);
  }
  free_.push_back(place);
  if (finished.error == 0) {
    control_.AddWritten(Bytes(sent.shard, sent.block));
  } else if (failure_.ok()) {
    failure_ = Status::FromErrno(finished.error,
                                 "write " + shard.path + " at " + std::to_string(sent.block * kBlockBytes));
  }
}

}  // namespace cairn
