#include "runtime/bulk/address_book.h"

#include "runtime/control/socket.h"

namespace cairn {
namespace {

constexpr char kQuestion = '?', kAnswer = '!';

std::string Answer(const std::string& purpose, const std::string& addresses) {
  return kAnswer + purpose + '\0' + addresses;
}

}  // namespace

void AddressBook::Publish(const std::string& purpose, const std::vector<std::string>& addresses) {
  std::string joined;
  for (const std::string& address : addresses) joined += (joined.empty() ? "" : ",") + address;
  std::set<int> asked;
  {
    std::lock_guard lock(mutex_);
    own_[purpose] = joined;
    asked = std::exchange(asked_[purpose], {});
    asked_.erase(purpose);
  }
  for (const int rank : asked) send_(rank, Answer(purpose, joined));
}

void AddressBook::Withdraw(const std::string& purpose) {
  std::lock_guard lock(mutex_);
  own_.erase(purpose);
  asked_.erase(purpose);
  std::erase_if(found_, [&](const auto& entry) { return entry.first.second == purpose; });
}

Result<std::vector<std::string>> AddressBook::Find(int rank, const std::string& purpose,
                                                   const Breaker& breaker, std::chrono::milliseconds bound) {
  const std::pair key(rank, purpose);
  const auto deadline = std::chrono::steady_clock::now() + bound;
  std::unique_lock lock(mutex_);
  if (!found_.contains(key)) {
    lock.unlock();
    send_(rank, kQuestion + purpose);
    lock.lock();
  }
  const auto answered = [&] { return found_.contains(key); };
  if (answered_.wait_until(lock, breaker.token(), deadline, answered)) return SplitAddresses(found_[key]);
  CAIRN_RETURN_IF_ERROR(breaker.status());
  return Status(Code::kTimeout, "rank " + std::to_string(rank) +
                                    " did not say where it takes bulk data within " +
                                    std::to_string(bound.count() / 1000) + " s");
}

void AddressBook::OnMessage(int from, std::string_view message) {
  if (message.empty()) return;
  const std::string_view rest = message.substr(1);
  if (message.front() == kQuestion) {
    const std::string purpose(rest);
    std::string answer;
    {
      std::lock_guard lock(mutex_);
      const auto own = own_.find(purpose);
      if (own == own_.end()) {
        asked_[purpose].insert(from);
        return;
      }
      answer = Answer(purpose, own->second);
    }
    return send_(from, std::move(answer));
  }
  const size_t zero = rest.find('\0');
  if (message.front() != kAnswer || zero == std::string_view::npos) return;
  {
    std::lock_guard lock(mutex_);
    found_[{from, std::string(rest.substr(0, zero))}] = rest.substr(zero + 1);
  }
  answered_.notify_all();
}

}  // namespace cairn
