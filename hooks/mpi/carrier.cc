// The carrier over MPI: cairn_carrier.h, on a communicator of Cairn's own, so that no message and no collective of the program's is met.
//
//   1. connect: MPI_Comm_idup of MPI_COMM_WORLD, whose ranks the members are, in the same order (open has looked). Until it is over, or given up,
//      errors on MPI_COMM_WORLD are returned; then they go to the program's error handler again.
//   2. Messages are MPI_Isend and MPI_Irecv with one tag: MPI keeps their order. Errors are returned.
//   3. disconnect: MPI_Comm_free, before the program can call MPI_Finalize. All ranks do so, or the communicator stays as it is until MPI ends.
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "hooks/mpi/functions.h"
#include "runtime/include/cairn/cairn_carrier.h"

namespace {

using cairn::mpi::Mpi;

enum class Kind { kConnect, kSend, kReceive };

struct Operation {
  Kind kind;
  MPI_Request request{};
};

// All of the program's one thread.
Mpi mpi;
auto& operations = *new std::map<int64_t, std::unique_ptr<Operation>>;  // by ticket
int64_t tickets = 0;
MPI_Comm comm;
MPI_Errhandler program_handler;  // of MPI_COMM_WORLD, while a connect is under way

std::string& LastError() {
  static auto& text = *new std::string;
  return text;
}

int Fail(std::string text) {
  LastError() = std::move(text);
  return -1;
}

// No exception crosses the interface.
template <typename Body>
auto Guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception&) {
    return -1;  // no memory, not even for a text
  }
}

const char* CarrierLastError() { return LastError().c_str(); }

int Open(void* library, int rank, int world_size, int trusted) {
  return Guarded([&] {
    if (const std::string why = mpi.Load(library); !why.empty()) return Fail(why);
    int initialized = 0, finalized = 0, level = 0, main = 0, own_rank = 0, size = 0;
    mpi.MPI_Initialized(&initialized);
    mpi.MPI_Finalized(&finalized);
    if (initialized == 0 || finalized != 0)
      return Fail("MPI is not initialised while the program is in cairn_restore");
    mpi.MPI_Query_thread(&level);
    mpi.MPI_Is_thread_main(&main);
    if (level < MPI_THREAD_SERIALIZED && main == 0)
      return Fail("cairn_restore is called by a thread that the program's level of MPI threads keeps out");
    if (level >= MPI_THREAD_SERIALIZED && trusted == 0) {
      return Fail(std::string("the program has ") +
                  (level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED" : "MPI_THREAD_MULTIPLE") +
                  ", so other threads of it may be in MPI during cairn_restore; --checkpoint-exchange=mpi "
                  "says that none is");
    }
    mpi.MPI_Comm_rank(mpi.world, &own_rank);
    mpi.MPI_Comm_size(mpi.world, &size);
    if (own_rank != rank || size != world_size) {
      return Fail("the session's member " + std::to_string(rank) + " of " + std::to_string(world_size) +
                  " is rank " + std::to_string(own_rank) + " of " + std::to_string(size) +
                  " in MPI_COMM_WORLD");
    }
    return 0;
  });
}

template <typename Start>  // int(Operation&): an MPI error
int64_t Begin(Kind kind, Start start) {
  return Guarded([&]() -> int64_t {
    auto operation = std::make_unique<Operation>(Operation{kind});
    const auto slot = operations.emplace(tickets, nullptr).first;
    if (const int error = start(*operation); error != MPI_SUCCESS) {
      operations.erase(slot);
      return Fail(mpi.Text(error));
    }
    slot->second = std::move(operation);
    return tickets++;
  });
}

void GiveBackErrorHandler() {
  mpi.MPI_Comm_set_errhandler(mpi.world, program_handler);
  mpi.MPI_Errhandler_free(&program_handler);  // what MPI_Comm_get_errhandler has counted
}

int64_t Connect() {
  return Begin(Kind::kConnect, [](Operation& operation) {
    if (const int error = mpi.MPI_Comm_get_errhandler(mpi.world, &program_handler); error != MPI_SUCCESS)
      return error;
    mpi.MPI_Comm_set_errhandler(mpi.world, mpi.errors_return);
    const int error = mpi.MPI_Comm_idup(mpi.world, &comm, &operation.request);
    if (error != MPI_SUCCESS) GiveBackErrorHandler();
    return error;
  });
}

constexpr size_t kMost = std::numeric_limits<int>::max();

int64_t Send(int to, const void* data, size_t bytes) {
  if (bytes > kMost) return Fail("a message of more than 2 GiB");
  return Begin(Kind::kSend, [&](Operation& operation) {
    return mpi.MPI_Isend(data, static_cast<int>(bytes), mpi.byte, to, 0, comm, &operation.request);
  });
}

int64_t Receive(int from, void* data, size_t room) {
  if (room > kMost) return Fail("a message of more than 2 GiB");
  return Begin(Kind::kReceive, [&](Operation& operation) {
    return mpi.MPI_Irecv(data, static_cast<int>(room), mpi.byte, from, 0, comm, &operation.request);
  });
}

int Test(int64_t ticket, size_t* bytes) {
  return Guarded([&] {
    const auto it = operations.find(ticket);
    if (it == operations.end()) return Fail("an unknown ticket");
    int over = 0, count = 0;
    MPI_Status status;
    const bool connecting = it->second->kind == Kind::kConnect;
    const int error = mpi.MPI_Test(&it->second->request, &over, &status);
    if (connecting && (error != MPI_SUCCESS || over != 0)) GiveBackErrorHandler();
    if (error != MPI_SUCCESS) {
      operations.erase(it);
      return Fail(mpi.Text(error));
    }
    if (over == 0) return 0;
    if (it->second->kind == Kind::kReceive) {
      mpi.MPI_Get_count(&status, mpi.byte, &count);
      *bytes = static_cast<size_t>(count);
    }
    if (connecting) mpi.MPI_Comm_set_errhandler(comm, mpi.errors_return);
    operations.erase(it);
    return 1;
  });
}

int Drop(int64_t ticket) {
  return Guarded([&] {
    const auto it = operations.find(ticket);
    if (it == operations.end() || it->second->kind == Kind::kSend)
      return Fail("nothing that can be given up");
    if (it->second->kind == Kind::kConnect) {
      GiveBackErrorHandler();
      return Fail("other ranks may still come");
    }
    int over = 0;
    MPI_Status status;
    // What has not met its message is gone at once. One that has is waited for by nobody: its sender may be dead.
    if (mpi.MPI_Cancel(&it->second->request) != MPI_SUCCESS ||
        mpi.MPI_Test(&it->second->request, &over, &status) != MPI_SUCCESS || over == 0)
      return Fail("the message has begun to arrive");
    operations.erase(it);
    return 0;
  });
}

// Looking for a message lets MPI work on all of them.
void Progress() {
  int there = 0;
  mpi.MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, MPI_STATUS_IGNORE);
}

void Disconnect() { mpi.MPI_Comm_free(&comm); }

constexpr cairn_carrier_v1 kCarrier = {
    1, CarrierLastError, cairn::mpi::kFamily, Open, Connect, Send, Receive, Test, Drop, Progress, Disconnect};

}  // namespace

extern "C" __attribute__((visibility("default"))) const cairn_carrier_v1* cairn_carrier_get(int version) {
  return version == 1 ? &kCarrier : nullptr;
}
