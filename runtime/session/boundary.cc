#include "runtime/session/boundary.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/session/protocol.h"
#include "runtime/thrown.h"

namespace cairn {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

std::function<void(const Status& thrown)> WarnOf(Log* log) {
  return [log](const Status& thrown) { log->Warn("work on a save has failed: ", thrown.message()); };
}

}  // namespace

Boundary::Boundary(const Bootstrap& boot, Log* log, Send send)
    : boot_(boot),
      log_(log),
      send_(std::move(send)),
      member_({.boundary_wait = boot.settings.boundary_wait}),
      copier_(WarnOf(log)) {}

void Boundary::Equip(Result<std::unique_ptr<Saver>> saver, std::unique_ptr<PartnerLink> partner) {
  const Lock lock(mutex_);
  saver_status_ = saver.status();
  partner_.reset();
  saver_.reset();
  if (!saver.ok()) return;
  saver_ = *std::move(saver);
  partner_ = std::move(partner);
  while (drainers_.size() < static_cast<size_t>(saver_->slots()))
    drainers_.push_back(std::make_unique<Worker>(WarnOf(log_)));
}

void Boundary::SetCount(int64_t count) {
  count_.store(count);
  armed_.store(Armed(kNever));
}

int64_t Boundary::Armed(int64_t agreed) const {
  const auto& steps = boot_.settings.rehearsal;
  const auto next = std::upper_bound(steps.begin(), steps.end(), count_.load());
  if (next == steps.end()) return agreed;
  return agreed == kNever ? *next : std::min(agreed, *next);
}

// ---- the application's side ----

bool Boundary::IsRehearsed() const {
  const auto& steps = boot_.settings.rehearsal;
  return std::binary_search(steps.begin(), steps.end(), count_.load());
}

bool Boundary::Rehearse() {
  if (boot_.rank == 0) OnTrigger(kTriggerRequest, agreement::kNoLimit, "");
  (void)Wait(std::nullopt);
  armed_.store(Armed(kNever));
  return count_.load() == boot_.settings.rehearsal.back();
}

void Boundary::Fence() {
  Lock lock(mutex_);
  AwaitLateCopies(lock);
}

void Boundary::AwaitLateCopies(Lock& lock) {
  changed_.wait(lock, [this] { return !late_; });
}

void Boundary::Arrive() {
  Lock lock(mutex_);
  AwaitLateCopies(lock);
  Carry(member_.OnBoundary(count_.load(), label_, Clock::now()), lock);
  Hold(lock);
}

void Boundary::QuietBegin() {
  Lock lock(mutex_);
  AwaitLateCopies(lock);
  if (!std::exchange(quiet_, true)) Carry(member_.OnQuietBegin(count_.load(), label_), lock);
}

void Boundary::QuietEnd() {
  Lock lock(mutex_);
  AwaitLateCopies(lock);
  if (!std::exchange(quiet_, false)) return;
  Carry(member_.OnQuietEnd(Clock::now()), lock);
  Hold(lock);
}

void Boundary::Save(const std::string& tag) {
  if (!(boot_.settings.on & kTriggerRequest))
    return log_->Debug("cairn_save: --checkpoint-on leaves requests out");
  OnTrigger(kTriggerRequest, agreement::kNoLimit, tag);
}

Status Boundary::SetMetric(const std::string& name, double value) {
  const Lock lock(mutex_);
  return metrics_.Set(name, {value, count_.load(std::memory_order_relaxed)});
}

Status Boundary::Wait(std::optional<milliseconds> bound) {
  // The program stands at a boundary while it waits: the save that it waits for may be taken here.
  const bool was_quiet = quiet_;
  QuietBegin();
  bool rested = false;
  {
    Lock lock(mutex_);
    Carry(member_.OnWait(), lock);
    const auto rest = [this] { return member_.at_rest(); };
    if (bound) {
      rested = changed_.wait_for(lock, *bound, rest);
    } else {
      changed_.wait(lock, rest);
      rested = true;
    }
  }
  if (!was_quiet) QuietEnd();
  return rested ? OkStatus() : Status(Code::kTimeout, "a save is still under way");
}

Status Boundary::Finish() {
  Lock lock(mutex_);
  AwaitLateCopies(lock);
  if (saver_) saver_->Hurry();  // the program computes no more
  const bool stateless = saver_ && !saver_->HaveMemory().ok();
  Carry(member_.OnFinalized(count_.load(), label_, stateless), lock);
  Hold(lock);
  return closed_.value_or(OkStatus());
}

void Boundary::Hold(Lock& lock) {
  while (member_.holds_application()) {
    if (snapshot_) {
      const agreement::TakeSnapshot order = *snapshot_;
      snapshot_.reset();
      TakeSnapshot(order, lock);
    } else if (const auto until = member_.wait_until()) {
      if (changed_.wait_until(lock, *until) == std::cv_status::timeout)
        Carry(member_.OnWaitExpired(Clock::now()), lock);
    } else {
      changed_.wait(lock);
    }
  }
}

// What a save that has ended left under way here is given up, and takes a moment to return; a write longer, where the file system hangs. The
// program is held no longer for that than for others at a boundary; at its end, until the save is dropped.
void Boundary::AwaitSlot(agreement::Mode mode, Lock& lock) {
  if (!saver_ || !saver_->busy()) return;
  if (partner_) partner_->GiveUp();
  const auto over = [this] {
    return !saver_->busy() || member_.state() == agreement::MemberState::kDiscarding;
  };
  if (mode == agreement::Mode::kFinal) return changed_.wait(lock, over);
  changed_.wait_for(lock, boot_.settings.boundary_wait, over);
}

void Boundary::TakeSnapshot(const agreement::TakeSnapshot& order, Lock& lock) {
  AwaitSlot(order.mode, lock);
  SayStuck();
  Status status = saver_ ? saver_->Acquire(order.id, order.boundary) : saver_status_;
  if (status.ok()) {
    const SnapshotStamp stamp{label_, count_.load(), order.mode == agreement::Mode::kFinal};
    const std::shared_ptr<const std::string> metrics = metrics_.bytes();
    lock.unlock();
    refused_ = OkStatus();
    if (collect_) collect_();
    status = refused_.ok() ? saver_->Copy(stamp, *metrics) : refused_;
    const bool leave = status.ok() && saver_->copies_late() && order.mode == agreement::Mode::kRunning;
    if (status.ok() && saver_->copies_late() && !leave) status = saver_->FinishCopy();
    lock.lock();
    if (leave) {
      late_ = true;
      armed_.store(count_.load() + 1, std::memory_order_seq_cst);
      member_.OnLeft(order.id);
      return copier_.Run([this, id = order.id, armed = Armed(kNever)] {
        Status finished = saver_->FinishCopy();
        Lock own(mutex_);
        late_ = false;
        armed_.store(armed, std::memory_order_seq_cst);
        FinishSnapshot(id, std::move(finished), own);
      });
    }
  }
  FinishSnapshot(order.id, std::move(status), lock);
}

void Boundary::FinishSnapshot(agreement::SaveId id, Status status, Lock& lock) {
  if (partner_ && status.ok()) {
    partner_->Send(saver_->BeginPartnerCopy(), [this](const Status& sent) {
      if (!sent.ok()) log_->Debug("no partner copy: ", sent.message());
      const Lock own(mutex_);
      saver_->PartnerCopyEnded();
      changed_.notify_all();
    });
  }
  Carry(member_.OnSnapshotted(id, std::move(status)), lock);
}

void Boundary::Carry(agreement::MemberActions actions, Lock& lock) {
  for (agreement::MemberAction& action : actions) {
    if (auto* send = std::get_if<agreement::Send>(&action)) {
      send_(kToLeaderMessage, agreement::Encode(send->message));
    } else if (auto* arm = std::get_if<agreement::Arm>(&action)) {
      armed_.store(Armed(arm->boundary), std::memory_order_seq_cst);
      Carry(member_.OnArmed(count_.load(std::memory_order_seq_cst)), lock);
    } else if (std::holds_alternative<agreement::Disarm>(action)) {
      armed_.store(Armed(kNever), std::memory_order_seq_cst);
    } else if (auto* snapshot = std::get_if<agreement::TakeSnapshot>(&action)) {
      if (snapshot->mode == agreement::Mode::kQuiet) {
        copier_.Run([this, order = *snapshot] {
          Lock own(mutex_);
          TakeSnapshot(order, own);
        });
      } else {
        snapshot_ = *snapshot;
      }
    } else if (auto* drain = std::get_if<agreement::StartDrain>(&action)) {
      const auto slot = static_cast<size_t>(saver_->BeginDrain());
      SayDrain();
      drainers_[slot]->Run([this, order = *drain] { Drain(order); });
    } else if (auto* ended = std::get_if<agreement::Ended>(&action)) {
      End(*ended);
    } else if (auto* answered = std::get_if<agreement::Answered>(&action)) {
      if (!answered->status.ok()) log_->Debug("a requested save was not made: ", answered->status.message());
    } else if (auto* closed = std::get_if<agreement::Closed>(&action)) {
      closed_ = closed->status;
    }
  }
  // Nobody waits for this snapshot any more: the program need not stand still until it is written.
  if (saver_ && member_.state() == agreement::MemberState::kDiscarding) saver_->Cancel();
  changed_.notify_all();
}

void Boundary::Drain(const agreement::StartDrain& order) {
  Lock lock(mutex_);
  Saver::Save* const save = saver_->EnterDrain(order.id);
  if (save == nullptr) return;  // it has ended before this thread came to it
  lock.unlock();
  const Result<MemberRecord> record = [&]() -> Result<MemberRecord> {
    try {
      return saver_->Drain(*save, order.attempt);
    } catch (...) {
      return Thrown();
    }
  }();
  lock.lock();
  SayDrain();
  saver_->DrainEnded(*save);
  if (said_stuck_ && !saver_->stuck(Nanoseconds(0))) {
    said_stuck_ = false;
    log_->Warn(boot_.settings.dir, " answers again");
  }
  Carry(member_.OnDrained(order.id, record.ok() ? Result<std::string>(EncodeSessionMessage(*record))
                                                : Result<std::string>(record.status())),
        lock);
}

// Within the time that others are waited for at a boundary, a write that was given up is only slow.
void Boundary::SayStuck() {
  const auto stuck = saver_ ? saver_->stuck(boot_.settings.boundary_wait) : std::nullopt;
  if (!stuck || std::exchange(said_stuck_, true)) return;
  log_->Warn(boot_.settings.dir, " does not answer: what was saved of step ", *stuck,
             " is still being written, though that save was given up. The job goes on; until the directory "
             "answers, its snapshots stay in the memory of its nodes");
}

void Boundary::End(const agreement::Ended& ended) {
  if (!saver_) return;
  // Of what is not durable the partner's copy may be all that will be.
  if (partner_ && ended.outcome != agreement::Outcome::kLocal) partner_->GiveUp();
  switch (ended.outcome) {
    case agreement::Outcome::kCommitted:
      return saver_->Settle(ended.id, Saver::Worth::kDurable);
    case agreement::Outcome::kLocal:
      return saver_->Settle(ended.id, Saver::Worth::kLocal);
    case agreement::Outcome::kDropped:
      return saver_->Settle(ended.id, Saver::Worth::kNone);
  }
}

// ---- the loop's side ----

void Boundary::OnMessage(agreement::ToMember message) {
  Lock lock(mutex_);
  Carry(member_.OnMessage(std::move(message), progress(), Clock::now()), lock);
}

void Boundary::OnTrigger(Trigger reason, Nanoseconds time_left, const std::string& tag) {
  Lock lock(mutex_);
  Carry(member_.OnTrigger(reason, time_left, tag), lock);
}

void Boundary::OnLeaderGone(const std::string& why) {
  Lock lock(mutex_);
  Carry(member_.OnLeaderGone(why), lock);
}

bool Boundary::finished() {
  const Lock lock(mutex_);
  return closed_ && closed_->ok();
}

void Boundary::Hurry() {
  const Lock lock(mutex_);
  if (saver_) saver_->Hurry();
}

void Boundary::Sample() {
  const int64_t count = count_.load(std::memory_order_relaxed);
  const auto now = Clock::now();
  if (count > sampled_count_ && sampled_at_ != Clock::time_point{}) {
    period_ = std::chrono::duration_cast<Nanoseconds>(now - sampled_at_) / (count - sampled_count_);
  }
  if (count > sampled_count_ || sampled_at_ == Clock::time_point{}) {
    sampled_count_ = count;
    sampled_at_ = now;
  }
  // However many ranks there are, the leader hears no more than a thousand of them a second.
  if (now - drain_said_ < milliseconds(boot_.world_size)) return;
  drain_said_ = now;
  Lock lock(mutex_);
  SayDrain();
}

void Boundary::SayDrain() {
  if (!saver_) return;
  if (const auto seen = saver_->seen()) send_(DrainSeen::kType, EncodeSessionMessage(*seen));
}

// ---- the process leaves ----

void Boundary::DrainOut(milliseconds bound) {
  Lock lock(mutex_);
  if (saver_) saver_->Hurry();
  changed_.wait_for(lock, bound, [this] { return !member_.has_snapshot(); });
  if (saver_) saver_->Cancel();
}

bool Boundary::IsIdle(milliseconds bound) {
  return copier_.IsIdle(bound) && std::all_of(drainers_.begin(), drainers_.end(),
                                              [&](const auto& drainer) { return drainer->IsIdle(bound); });
}

void Boundary::EndThreads() {
  copier_.Join();
  for (const auto& drainer : drainers_) drainer->Join();
  partner_.reset();
}

}  // namespace cairn
