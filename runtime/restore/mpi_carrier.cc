#include "runtime/restore/mpi_carrier.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/library.h"
#include "runtime/restore/patience.h"

namespace cairn {
namespace {

constexpr char kLibrary[] = "libcairn_mpi.so";

// Where dlsym finds the functions of the program's MPI.
struct Found {
  bool there = false;
  void* library = nullptr;  // nullptr: in the process
};

// A Python module brings MPI along for itself alone (RTLD_LOCAL), so what is loaded is looked through, too.
Found FindMpi() {
  if (dlsym(RTLD_DEFAULT, "MPI_Initialized") != nullptr) return {true, nullptr};
  std::vector<std::string> loaded;  // opened when the loader's lock is free again
  const auto note = [](dl_phdr_info* info, size_t, void* out) {
    const std::string_view path = info->dlpi_name;
    if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
      static_cast<std::vector<std::string>*>(out)->emplace_back(path);
    return 0;
  };
  dl_iterate_phdr(note, &loaded);
  for (const std::string& path : loaded) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (dlsym(library, "MPI_Initialized") != nullptr) return {true, library};
    dlclose(library);
  }
  return {};
}

// Once: the library stays in the process.
const cairn_carrier_v1* Calls() {
  static const cairn_carrier_v1* const calls = []() -> const cairn_carrier_v1* {
    void* const library = OpenLibrary(kLibrary);
    if (library == nullptr) return nullptr;
    const auto get = reinterpret_cast<cairn_carrier_get_fn*>(dlsym(library, CAIRN_CARRIER_GET));
    return get != nullptr ? get(1) : nullptr;
  }();
  return calls;
}

}  // namespace

Status OfferMpi(int rank, int world_size, bool trusted) {
  const Found mpi = FindMpi();
  if (!mpi.there) return {Code::kNotFound, "this process has no MPI"};
  const auto initialized = reinterpret_cast<int (*)(int*)>(dlsym(mpi.library, "MPI_Initialized"));
  int yes = 0;
  if (initialized(&yes) != 0 || yes == 0) return {Code::kNotFound, "MPI is not initialised"};
  const cairn_carrier_v1* const calls = Calls();
  if (calls == nullptr) {
    return {Code::kUnavailable, std::string(kLibrary) +
                                    " of this version of Cairn cannot be loaded; it is built where CMake "
                                    "finds MPI, and installed with libcairn.so"};
  }
  if (calls->open(mpi.library, rank, world_size, trusted ? 1 : 0) != 0)
    return {Code::kUnavailable, calls->last_error()};
  return OkStatus();
}

Result<std::unique_ptr<MpiCarrier>> MpiCarrier::Connect(const Breaker& round) {
  std::unique_ptr<MpiCarrier> carrier(new MpiCarrier(*Calls()));
  CAIRN_ASSIGN_OR_RETURN(const Ticket ticket, carrier->Began(carrier->calls_.connect()));
  for (Patience patience;; patience.Wait()) {
    CAIRN_ASSIGN_OR_RETURN(const std::optional<size_t> over, carrier->Test(ticket));
    if (over) return carrier;
    if (const Status broken = round.status(); !broken.ok()) {
      carrier->Drop(ticket);
      return broken;
    }
  }
}

Result<Carrier::Ticket> MpiCarrier::Began(int64_t ticket) const {
  if (ticket < 0) return Status(Code::kUnavailable, std::string("MPI: ") + calls_.last_error());
  return ticket;
}

Result<Carrier::Ticket> MpiCarrier::Send(uint32_t to, std::span<const std::byte> bytes) {
  return Began(calls_.send(static_cast<int>(to), bytes.data(), bytes.size()));
}

Result<Carrier::Ticket> MpiCarrier::Receive(uint32_t from, std::span<std::byte> room) {
  return Began(calls_.receive(static_cast<int>(from), room.data(), room.size()));
}

Result<std::optional<size_t>> MpiCarrier::Test(Ticket ticket) {
  size_t bytes = 0;
  const int over = calls_.test(ticket, &bytes);
  if (over < 0) return Status(Code::kUnavailable, std::string("MPI: ") + calls_.last_error());
  return over == 0 ? std::optional<size_t>() : bytes;
}

bool MpiCarrier::Drop(Ticket ticket) { return calls_.drop(ticket) == 0; }

}  // namespace cairn
