// toy: a rank without MPI, for multi-process tests. One global array of doubles, block-distributed; every element evolves by itself, so the
// result does not depend on the number of ranks, and ranks may drift apart.
//
// Prints lines on stdout: "open 0|CODE text", "restore 0|CODE text", "resumed STEP finished", "hash HEX" (xor over this rank's elements, so
// that the xor over all ranks is that of the whole array), "done CODE", "handler NANOSECONDS" (since 1970, when its own SIGTERM handler ran),
// "taken SIGNAL" (by sigwait), "leaving STEP", "replica HEX" (of the array that all ranks hold), "read BYTES" (that the kernel counted in
// cairn_restore: reads of files), "note MEMBER of MEMBER at STEP" (what each member of the life before noted of itself when it was saved),
// "holding STEP" (now, at hold_at).
// Options are in the struct below.

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "runtime/include/cairn/cairn.h"

namespace {

struct Options {
  int64_t n = 10007;
  int64_t replica = 0;  // elements of a second array, of which each rank holds all
  int64_t columns = 1;  // of the array; divides n
  bool flat = false;    // this rank registers a flat range of it, else rows
  int64_t steps = 50;
  int step_us = 1000;
  std::string hurry;             // no step takes step_us any more once this file exists
  std::vector<int64_t> save_at;  // rank 0 asks for a save after these steps
  int64_t save_every = 0;        // rank 0 asks for a save every so many steps, and all wait for it
  std::string tag;
  // Every so many steps, before the boundary, each rank gives the metric "loss": |step - 30| + 100 · rank. Odd ranks alone give "odd".
  int64_t measure_every = 0;
  int64_t quiet_at = -1;  // waits in cairn_quiet after this step until quiet_file exists
  std::string quiet_file;
  std::vector<int64_t> wait_at;  // calls cairn_wait after these steps
  int64_t exit_at = -1;          // this rank calls exit(0) after this step
  // This rank calls exit(0), or _exit(0), once this run directory holds an attempt that is not committed.
  std::string exit_while_saving, abort_while_saving;
  std::string
      own_handler;  // "before" or "after" cairn_open: sets a SIGTERM handler; after it the program ends its loop
  bool sigwait =
      false;  // SIGTERM is blocked; a thread waits for it, and ends the program with 7 at the second one
  int64_t freeze_at = -1;  // this rank stops stepping for freeze_ms after this step
  int freeze_ms = 0;
  int64_t fork_at = -1;   // forks a child after this step that calls into Cairn, and outlives this process
  int64_t clone_at = -1;  // makes a child past libc after this step; it keeps every descriptor, and sleeps
  bool stop_in_copy =
      false;               // who reads its array within cairn_step is stopped (SIGSTOP) in the middle of it
  bool forgetful = false;  // each step depends on a number that is not registered
  bool forgetful_note = false;  // the note counts the steps of this life
  std::string note_name = "note";
  bool other_label = false;
  int blob_policy = CAIRN_BLOB_RESEED;
  bool no_finalize = false;
  std::string restore_file;  // before cairn_restore, waits until this file exists
  std::string wait_file;     // before the first step, waits until this file exists
  int64_t hold_at = -1;      // waits for hold_file after this step
  std::string hold_file;
};

void AwaitFile(const std::string& path) {
  while (!path.empty() && access(path.c_str(), F_OK) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool HoldsFile(const std::filesystem::path& dir, const char* prefix) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (entry.path().filename().string().starts_with(prefix)) return true;
  }
  return false;
}

// A save is under way in the run's directory, and has come as far as to its first file of arrays if `with_files`.
bool HoldsAttempt(const std::string& dir, bool with_files) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const auto& path = entry.path();
    if (path.filename().string().starts_with("step-") &&
        !std::filesystem::exists(path / "manifest.json", error) && (!with_files || HoldsFile(path, "shard-")))
      return true;
  }
  return false;
}

// What a rank only puts together when it is about to be saved; its length changes.
struct Note {
  int64_t rank = 0, step = 0;
  char text[64];
  size_t size = 0;

  static void Write(void* user) {
    auto* note = static_cast<Note*>(user);
    note->size = static_cast<size_t>(std::snprintf(note->text, sizeof note->text, "of %lld at %lld",
                                                   static_cast<long long>(note->rank),
                                                   static_cast<long long>(note->step)));
  }
};

uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

// Bytes that this process has read with read, pread and the like. What comes from a socket by recv is not in it.
int64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t bytes = 0;
  io >> name >> bytes;
  return name == "rchar:" ? bytes : -1;
}

std::atomic<int64_t> handled_ns{0};

void OnTerm(int) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  handled_ns = int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

void AwaitTerm() {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  std::thread([term] {
    int signo = 0;
    sigwait(&term, &signo);
    std::printf("taken %d\n", signo);
    sigwait(&term, &signo);
    _exit(7);
  }).detach();
}

// A page of the array that nobody may read: who does is stopped there, and goes on at SIGCONT.
char* trap = nullptr;
size_t page_bytes = 0;

void OnTrap(int, siginfo_t* info, void*) {
  const char* at = static_cast<const char*>(info->si_addr);
  if (at < trap || at >= trap + page_bytes) _exit(5);
  mprotect(trap, page_bytes, PROT_READ | PROT_WRITE);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSTOP);
}

void SetTrap(std::vector<double>& u) {
  page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto middle = reinterpret_cast<uintptr_t>(u.data() + u.size() / 2);
  trap = reinterpret_cast<char*>((middle + page_bytes - 1) / page_bytes * page_bytes);
  struct sigaction action {};
  action.sa_sigaction = OnTrap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGINT, SIG_DFL);  // a test that runs in the background would hand on that it is ignored
  Options o;
  CLI::App app("toy");
  app.add_option("--n", o.n);
  app.add_option("--replica", o.replica);
  app.add_option("--columns", o.columns);
  app.add_flag("--flat", o.flat);
  app.add_option("--steps", o.steps);
  app.add_option("--step-us", o.step_us);
  app.add_option("--hurry", o.hurry);
  app.add_option("--save-at", o.save_at);
  app.add_option("--save-every", o.save_every);
  app.add_option("--tag", o.tag);
  app.add_option("--measure-every", o.measure_every);
  app.add_option("--quiet-at", o.quiet_at);
  app.add_option("--quiet-file", o.quiet_file);
  app.add_option("--exit-at", o.exit_at);
  app.add_option("--wait-at", o.wait_at);
  app.add_option("--fork-at", o.fork_at);
  app.add_option("--clone-at", o.clone_at);
  app.add_option("--exit-while-saving", o.exit_while_saving);
  app.add_option("--abort-while-saving", o.abort_while_saving);
  app.add_option("--own-handler", o.own_handler);
  app.add_flag("--sigwait", o.sigwait);
  app.add_option("--freeze-at", o.freeze_at);
  app.add_option("--freeze-ms", o.freeze_ms);
  app.add_option("--blob-policy", o.blob_policy);
  app.add_option("--restore-file", o.restore_file);
  app.add_option("--wait-file", o.wait_file);
  app.add_option("--hold-at", o.hold_at);
  app.add_option("--hold-file", o.hold_file);
  app.add_flag("--stop-in-copy", o.stop_in_copy);
  app.add_flag("--forgetful", o.forgetful);
  app.add_flag("--forgetful-note", o.forgetful_note);
  app.add_option("--note-name", o.note_name);
  app.add_flag("--other-label", o.other_label);
  app.add_flag("--no-finalize", o.no_finalize);
  CLI11_PARSE(app, argc, argv);
  setvbuf(stdout, nullptr, _IOLBF, 0);

  const char* rank_text = std::getenv("SLURM_PROCID");
  const char* world_text = std::getenv("SLURM_NTASKS");
  const int64_t rank = rank_text != nullptr ? std::atoll(rank_text) : 0;
  const int64_t world = world_text != nullptr ? std::atoll(world_text) : 1;
  const int64_t unit = o.flat ? 1 : o.columns;  // a rank holds whole rows, or any stretch of the flattening
  const int64_t first = o.n / unit * rank / world * unit;
  const int64_t count = o.n / unit * (rank + 1) / world * unit - first;
  std::vector<double> u(static_cast<size_t>(count), std::numeric_limits<double>::quiet_NaN());
  double time = std::numeric_limits<double>::quiet_NaN();
  uint64_t seed = 0;

  if (o.sigwait) AwaitTerm();
  if (o.own_handler == "before") {
    struct sigaction action {};
    action.sa_handler = OnTerm;
    sigaction(SIGTERM, &action, nullptr);
  }
  cairn_session* session = nullptr;
  int code = cairn_open(nullptr, &session);
  std::printf("open %d %s\n", code, cairn_last_error());
  if (code != CAIRN_OK) return 3;
  if (o.own_handler == "after") signal(SIGTERM, OnTerm);

  const int ndim = o.columns > 1 ? 2 : 1;
  if (o.flat) {
    const cairn_flat_range range{.offset = first, .count = count, .data = u.data()};
    cairn_flat flat{};
    flat.struct_size = sizeof flat;
    flat.dtype = CAIRN_F64;
    flat.ndim = ndim;
    flat.shape[0] = o.n / o.columns;
    flat.shape[1] = o.columns;
    flat.range_count = 1;
    flat.ranges = &range;
    cairn_add_flat(session, "u", &flat);
  } else {
    cairn_piece piece{};
    piece.offset[0] = first / o.columns;
    piece.extent[0] = count / o.columns;
    piece.extent[1] = o.columns;
    piece.data = u.data();
    cairn_array array{};
    array.struct_size = sizeof array;
    array.dtype = CAIRN_F64;
    array.ndim = ndim;
    array.shape[0] = o.n / o.columns;
    array.shape[1] = o.columns;
    array.piece_count = 1;
    array.pieces = &piece;
    cairn_add_array(session, "u", &array);
  }
  cairn_piece scalar{};
  scalar.data = &time;
  cairn_array replicated{};
  replicated.struct_size = sizeof replicated;
  replicated.dtype = CAIRN_F64;
  replicated.piece_count = 1;
  replicated.pieces = &scalar;
  cairn_add_array(session, "time", &replicated);
  std::vector<double> replica(static_cast<size_t>(o.replica), std::numeric_limits<double>::quiet_NaN());
  cairn_piece table{};
  table.extent[0] = o.replica;
  table.data = replica.data();
  replicated.ndim = 1;
  replicated.shape[0] = o.replica;
  replicated.pieces = &table;
  if (o.replica > 0) cairn_add_array(session, "replica", &replicated);
  cairn_add_blob(session, "seed", &seed, sizeof seed, o.blob_policy);
  static Note note;
  note.rank = rank;
  cairn_add_sized_blob(session, o.note_name.c_str(), note.text, sizeof note.text, &note.size,
                       CAIRN_BLOB_MERGE);
  cairn_on_copy(session, Note::Write, &note);

  AwaitFile(o.restore_file);
  cairn_report report{};
  report.struct_size = sizeof report;
  const int64_t read_before = BytesRead();
  code = cairn_restore(session, &report);
  std::printf("read %lld\n", static_cast<long long>(BytesRead() - read_before));
  std::printf("restore %d %s\n", code, cairn_last_error());
  if (code != CAIRN_OK) return 4;
  if (report.restored == 0) {
    for (int64_t i = 0; i < count; ++i)
      u[static_cast<size_t>(i)] = 1.0 + static_cast<double>(first + i) / static_cast<double>(o.n);
    time = 0;
    for (size_t i = 0; i < replica.size(); ++i) replica[i] = static_cast<double>(i);
  }
  if (report.items_reset > 0 || report.restored == 0) seed = 1000 + static_cast<uint64_t>(rank);
  std::printf("resumed %lld %d seed %llu\n", static_cast<long long>(report.step), report.finished,
              static_cast<unsigned long long>(seed));
  for (int member = 0; member < report.world_size_saved; ++member) {
    const void* text = nullptr;
    size_t size = 0;
    cairn_saved_blob(session, o.note_name.c_str(), member, &text, &size);
    std::printf("note %d %.*s\n", member, static_cast<int>(size), static_cast<const char*>(text));
  }
  AwaitFile(o.wait_file);

  double forgotten = 0;
  for (int64_t step = report.step; step < o.steps; ++step) {
    for (double& x : u) x = std::fma(x, 1.0000001, 1e-9 * static_cast<double>(step)) + forgotten;
    if (o.forgetful) forgotten += 0.5;
    time += 0.5;
    for (double& x : replica) x += 0.25;
    note.step = step + 1 - (o.forgetful_note ? report.step : 0);
    if (o.step_us > 0 && (o.hurry.empty() || access(o.hurry.c_str(), F_OK) != 0))
      std::this_thread::sleep_for(std::chrono::microseconds(o.step_us));
    const int64_t done = step + 1;
    if (rank == 0) {
      for (int64_t at : o.save_at) {
        if (at == done) cairn_save(session, o.tag.empty() ? nullptr : o.tag.c_str());
      }
    }
    if (o.measure_every > 0 && done % o.measure_every == 0) {
      cairn_metric(session, "loss", static_cast<double>(std::abs(done - 30) + 100 * rank));
      if (rank % 2 == 1) cairn_metric(session, "odd", static_cast<double>(rank));
    }
    if (o.stop_in_copy) {
      if (trap == nullptr) SetTrap(u);
      mprotect(trap, page_bytes, PROT_NONE);
    }
    const bool save_now = o.save_every > 0 && done % o.save_every == 0;
    if (save_now && rank == 0) cairn_save(session, nullptr);
    cairn_step(session, o.other_label ? -done : done);
    if (save_now) cairn_wait(session, 60000);
    if (o.stop_in_copy) mprotect(trap, page_bytes, PROT_READ | PROT_WRITE);
    if (done == o.exit_at) std::exit(0);
    if (done == o.fork_at && fork() == 0) {
      cairn_session* again = session;
      cairn_step(again, done + 1);
      cairn_finalize(&again);
      cairn_open(nullptr, &again);
      _exit(std::printf("child %d\n", cairn_active(again)) > 0 ? 0 : 1);
    }
    if (done == o.clone_at) {
      const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
      while (child == 0) pause();
      std::printf("clone %ld\n", child);
    }
    if (std::find(o.wait_at.begin(), o.wait_at.end(), done) != o.wait_at.end())
      std::printf("waited %d\n", cairn_wait(session, 20000));
    if (HoldsAttempt(o.exit_while_saving, false)) {
      std::printf("leaving %lld\n", static_cast<long long>(done));
      std::exit(0);
    }
    if (HoldsAttempt(o.abort_while_saving, true)) {
      std::printf("leaving %lld\n", static_cast<long long>(done));
      _exit(0);
    }
    if (handled_ns != 0) {
      std::printf("handler %lld\n", static_cast<long long>(handled_ns));
      break;
    }
    if (done == o.freeze_at) std::this_thread::sleep_for(std::chrono::milliseconds(o.freeze_ms));
    if (done == o.hold_at) {
      std::printf("holding %lld\n", static_cast<long long>(done));
      AwaitFile(o.hold_file);
    }
    if (done == o.quiet_at) {
      cairn_quiet_begin(session);
      AwaitFile(o.quiet_file);
      cairn_quiet_end(session);
    }
  }

  uint64_t hash = rank == 0 ? Mix(static_cast<uint64_t>(time * 2) + 77) : 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &u[static_cast<size_t>(i)], sizeof bits);
    hash ^= Mix(bits + 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(first + i + 1));
  }
  uint64_t replica_hash = 0;
  for (size_t i = 0; i < replica.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &replica[i], sizeof bits);
    replica_hash ^= Mix(bits + i);
  }
  std::printf("replica %016llx\n", static_cast<unsigned long long>(replica_hash));
  if (o.no_finalize) {
    std::printf("hash %016llx\n", static_cast<unsigned long long>(hash));
    return 0;
  }
  code = cairn_finalize(&session);
  std::printf("hash %016llx\n", static_cast<unsigned long long>(hash));
  std::printf("done %d %s\n", code, cairn_last_error());
  return 0;
}
