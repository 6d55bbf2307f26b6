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

std::optional<Counter> ReadBeat(const std::string& path) {
  const Result<std::string> bytes = ReadAll(path, kCounterBytes);
  if (!bytes.ok()) return std::nullopt;
  const Result<Counter> counter = DecodeCounter(*bytes);
  if (!counter.ok()) return std::nullopt;
  return *counter;
}

BeatWatch::State BeatWatch::Observe(const std::optional<Counter>& counter, Time now) {
  if (counter && counter->left) return State::kLeft;
  if (!since_) {
    since_ = now;
    last_ = counter;
  } else if (counter && counter != last_) {  // appearing is moving, too
    since_ = now;
    last_ = counter;
    moved_ = true;
  }
  if (now - *since_ >= kBeatBound) return State::kStill;
  return moved_ ? State::kMoving : State::kWaiting;
}

}  // namespace cairn
