#include "runtime/s3/use_s3.h"

#include <memory>
#include <mutex>
#include <string>

#include "runtime/io/stores.h"
#include "runtime/s3/s3_store.h"

namespace cairn {

void UseS3() {
  static std::once_flag once;
  std::call_once(once, [] {
    SetOpenStore([](const std::string& bucket) -> Result<std::shared_ptr<ObjectStore>> {
      CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenS3(bucket));
      return std::shared_ptr<ObjectStore>(std::move(store));
    });
  });
}

}  // namespace cairn
