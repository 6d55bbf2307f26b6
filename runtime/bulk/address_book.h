// AddressBook: how a member learns where another one's BulkReceiver is. Nobody needs all addresses, so nobody has them: whoever wants to send asks
// the one rank, by a message of the fabric, and keeps the answer.
//
//  1. The receiving side publishes its addresses under its purpose.
//  2. The sending side asks: `?` purpose.
//  3. The answer, at once or as soon as it is published: `!` purpose, a zero byte, addresses with commas between them.
//
// Any thread. `send` hands a message to the fabric (type kBulkAddressMessage of the session) and must not block.
#ifndef CAIRN_RUNTIME_BULK_ADDRESS_BOOK_H_
#define CAIRN_RUNTIME_BULK_ADDRESS_BOOK_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/status.h"
#include "runtime/bulk/breaker.h"

namespace cairn {

class AddressBook {
 public:
  using Send = std::function<void(int rank, std::string message)>;
  explicit AddressBook(Send send) : send_(std::move(send)) {}

  void Publish(const std::string& purpose, const std::vector<std::string>& addresses);
  void Withdraw(const std::string& purpose);  // later questions are kept until it is published again

  // Asks and waits. kTimeout after `bound`; the breaker's reason.
  Result<std::vector<std::string>> Find(int rank, const std::string& purpose, const Breaker& breaker,
                                        std::chrono::milliseconds bound);

  void OnMessage(int from, std::string_view message);

 private:
  const Send send_;
  std::mutex mutex_;
  std::condition_variable_any answered_;
  // Guarded by mutex_.
  std::map<std::string, std::string> own_;                    // purpose → addresses
  std::map<std::string, std::set<int>> asked_;                // purpose → who waits for it
  std::map<std::pair<int, std::string>, std::string> found_;  // rank, purpose → addresses
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_ADDRESS_BOOK_H_
