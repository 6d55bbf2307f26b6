#include "runtime/catalog/beat.h"

namespace cairn {

Result<BeatFile> BeatFile::Create(std::string path, FileMode mode) {
  BeatFile file(std::move(path));
  file.counter_.value = 1;
  CAIRN_RETURN_IF_ERROR(PublishFile(file.path_, EncodeCounter(file.counter_), mode));
  return file;
}

Status BeatFile::Beat() {
  ++counter_.value;
  return Write();
}

Status BeatFile::Leave() {
  counter_.left = true;
  return Beat();
}

// Not durable: it only has to be seen by others, which close achieves, also over NFS.
Status BeatFile::Write() { return OverwriteFile(path_, EncodeCounter(counter_)); }

Result<std::optional<Counter>> ReadBeat(const std::string& path) {
  const Result<std::string> bytes = ReadAll(path, kCounterBytes);
  const Code code = bytes.status().code();
  if (code == Code::kNotFound || code == Code::kDamage) return std::optional<Counter>();
  if (!bytes.ok()) return bytes.status();
  const Result<Counter> counter = DecodeCounter(*bytes);
  return counter.ok() ? std::optional(*counter) : std::nullopt;
}

BeatWatch::State BeatWatch::Observe(const Result<std::optional<Counter>>& read, Time now) {
  if (!read.ok()) {
    since_.reset();
    return moved_ ? State::kMoving : State::kWaiting;
  }
  const std::optional<Counter>& counter = *read;
  if (counter && counter->left) return State::kLeft;
  if (counter && counter != last_) {
    moved_ = seen_;  // appearing is moving, too
    since_ = now;
    last_ = counter;
  }
  seen_ = true;
  if (!since_) since_ = now;
  if (now - *since_ >= kBeatBound) return State::kStill;
  return moved_ ? State::kMoving : State::kWaiting;
}

}  // namespace cairn
