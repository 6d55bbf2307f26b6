#include "runtime/session/signals.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/include/cairn/cairn.h"

namespace cairn {
namespace {

using GetTable = const cairn_shim_v1* (*)();

const cairn_shim_v1* FindShim() {
  void* symbol = dlsym(RTLD_DEFAULT, "cairn_shim_v1_get");
  if (symbol == nullptr) {
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&cairn_abi_version), &self) == 0) return nullptr;
    std::string path = self.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + "cairn/libcairn_preload.so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) symbol = dlsym(library, "cairn_shim_v1_get");
  }
  return symbol != nullptr ? reinterpret_cast<GetTable>(symbol)() : nullptr;
}

}  // namespace

Signals::Signals(Loop* loop, Log* log, int extra_signal,
                 std::function<void(int signo, bool from_slurm)> on_signal)
    : shim_(FindShim()) {
  if (shim_ == nullptr) return;
  event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_.valid()) {
    log->Warn("signals are not caught: eventfd: ", std::strerror(errno));
    shim_ = nullptr;
    return;
  }
  watcher_ =
      std::make_unique<FdWatcher>(loop, event_.get(), [this, on_signal = std::move(on_signal)](bool, bool) {
        uint64_t count = 0;
        if (read(event_.get(), &count, sizeof count) != sizeof count) return;
        int signo = 0, from_slurm = 0, sender = 0;
        while (shim_->take_signal(&signo, &from_slurm, &sender) != 0) on_signal(signo, from_slurm != 0);
      });
  watcher_->Watch(true, false);
  const int joined = shim_->become_member(event_.get(), extra_signal);
  if (joined < 0) {
    log->Warn("signals are not caught: ", std::strerror(errno));
    shim_ = nullptr;
  } else if (joined > 0 && std::getenv("SLURM_CAIRN_STEPD") != nullptr) {  // else nobody sends such a signal
    log->Warn("the other processes of this step are not shielded from the grace time's SIGTERM: ",
              std::strerror(errno));
  }
}

Signals::~Signals() {
  if (shim_ != nullptr) shim_->leave();
  watcher_.reset();
}

void Signals::Terminate() {
  if (shim_ == nullptr) {
    kill(getpid(), SIGTERM);
    return;
  }
  shim_->forward(SIGTERM);
  shim_->deliver(SIGTERM);
}

void Signals::Interrupt() {
  if (shim_ != nullptr) shim_->deliver(SIGINT);
}

void Signals::RunOwnHandler() {
  if (shim_ != nullptr && shim_->has_handler(SIGTERM) == 1) shim_->deliver(SIGTERM);
}

}  // namespace cairn
