// The C interface over Session. Every function is a guard around one call: no exception leaves, the text of an error stays in the thread, and
// a process that is unprotected, or was forked from a member, does nothing.

#include <cstdlib>
#include <mutex>
#include <set>

#include "runtime/abi_guard.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/io/fork_guard.h"
#include "runtime/io/stores.h"
#include "runtime/s3/use_s3.h"
#include "runtime/session/session.h"

struct cairn_session {
  cairn::Session::Pointer impl;  // empty: unprotected
  uint64_t generation = 0;       // of the process that opened it
};

namespace {

using cairn::Code;
using cairn::Status;
using cairn::abi::Guard;
using cairn::abi::LastError;
using cairn::abi::Report;
using cairn::abi::ToAbi;
using cairn::abi::WrongState;

// The session to work on, or nullptr when there is nothing to do.
cairn::Session* Live(const cairn_session* session) {
  if (session == nullptr || session->generation != cairn::ForkGuard::Generation()) return nullptr;
  return session->impl.get();
}

// Sessions that are open when the process exits are left in good order: what is staged is drained, the others are told.
class OpenSessions {
 public:
  static OpenSessions& Get() {
    static OpenSessions* const sessions = new OpenSessions;  // lives as long as the exit handler may run
    return *sessions;
  }
  void Add(cairn_session* session) {
    const std::lock_guard lock(mutex_);
    if (!registered_) std::atexit([] { Get().LeaveAll(); });
    registered_ = true;
    open_.insert(session);
  }
  void Remove(cairn_session* session) {
    const std::lock_guard lock(mutex_);
    open_.erase(session);
  }

 private:
  // The handles stay: the program's other threads may still use them.
  void LeaveAll() {
    std::set<cairn_session*> open;
    {
      const std::lock_guard lock(mutex_);
      open = open_;
    }
    for (cairn_session* session : open) {
      if (Live(session) != nullptr) session->impl.reset();
    }
  }
  std::mutex mutex_;
  bool registered_ = false;
  std::set<cairn_session*> open_;
};

std::optional<std::string> GetVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

extern "C" {

CAIRN_API const char* cairn_last_error(void) { return LastError().c_str(); }

CAIRN_API int cairn_abi_version(void) { return CAIRN_ABI_VERSION; }

CAIRN_API int cairn_open(const cairn_open_options* options, cairn_session** session) {
  return Guard([&] {
    if (session == nullptr) return Report({Code::kInvalid, "cairn_open: session is NULL"});
    *session = nullptr;
    if (options != nullptr && options->struct_size < sizeof(cairn_open_options)) {
      return Report({Code::kInvalid, "cairn_open: struct_size is not sizeof(cairn_open_options)"});
    }
    const std::string name = options != nullptr && options->name != nullptr ? options->name : "main";
    const int rank = options != nullptr ? options->rank : -1;
    const int world_size = options != nullptr ? options->world_size : 0;
    auto opened = std::make_unique<cairn_session>();
    opened->generation = cairn::ForkGuard::Generation();
    // Children never open sessions.
    auto boot = opened->generation == 0 ? cairn::ReadBootstrap(GetVariable, rank, world_size)
                                        : cairn::Result<std::optional<cairn::Bootstrap>>(std::nullopt);
    if (!boot.ok()) return Report(boot.status());
    if (boot->has_value()) {
      cairn::UseS3();
      // A bucket's library has handlers of its own for the exit (OpenSSL). They must be registered before ours, which still drains, so as to run
      // after it. What is wrong with the bucket will be said by its first use.
      if (cairn::IsObjectPath((*boot)->settings.dir))
        static_cast<void>(cairn::PlaceOf((*boot)->settings.dir));
      auto impl = cairn::Session::Open(name, **boot);
      if (!impl.ok()) return Report(impl.status());
      opened->impl = *std::move(impl);
    }
    *session = opened.release();
    OpenSessions::Get().Add(*session);
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_active(const cairn_session* session) { return Live(session) != nullptr ? 1 : 0; }

CAIRN_API int cairn_add_array(cairn_session* session, const char* name, const cairn_array* array) {
  return Guard([&] {
    if (name == nullptr || array == nullptr)
      return Report({Code::kInvalid, "cairn_add_array: name or array is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun())
      return WrongState("cairn_add_array in or after cairn_restore: add everything before");
    return Report(live->items().AddArray(name, *array));
  });
}

CAIRN_API int cairn_add_flat(cairn_session* session, const char* name, const cairn_flat* flat) {
  return Guard([&] {
    if (name == nullptr || flat == nullptr)
      return Report({Code::kInvalid, "cairn_add_flat: name or flat is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun())
      return WrongState("cairn_add_flat in or after cairn_restore: add everything before");
    return Report(live->items().AddFlat(name, *flat));
  });
}

CAIRN_API int cairn_add_table(cairn_session* session, const char* name, const cairn_table* table) {
  return Guard([&] {
    if (name == nullptr || table == nullptr)
      return Report({Code::kInvalid, "cairn_add_table: name or table is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun())
      return WrongState("cairn_add_table in or after cairn_restore: add everything before");
    return Report(live->items().AddTable(name, *table));
  });
}

CAIRN_API int cairn_add_blob(cairn_session* session, const char* name, void* data, size_t size, int policy) {
  return Guard([&] {
    if (name == nullptr) return Report({Code::kInvalid, "cairn_add_blob: name is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun())
      return WrongState("cairn_add_blob in or after cairn_restore: add everything before");
    return Report(live->items().AddBlob(name, data, size, nullptr, policy));
  });
}

CAIRN_API int cairn_add_sized_blob(cairn_session* session, const char* name, void* data, size_t capacity,
                                   size_t* size, int policy) {
  return Guard([&] {
    if (name == nullptr || size == nullptr)
      return Report({Code::kInvalid, "cairn_add_sized_blob: name or size is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun())
      return WrongState("cairn_add_sized_blob in or after cairn_restore: add everything before");
    return Report(live->items().AddBlob(name, data, capacity, size, policy));
  });
}

CAIRN_API int cairn_saved_blob(cairn_session* session, const char* name, int member, const void** data,
                               size_t* size) {
  return Guard([&] {
    if (name == nullptr || data == nullptr || size == nullptr)
      return Report({Code::kInvalid, "cairn_saved_blob: name, data or size is NULL"});
    *data = nullptr;
    *size = 0;
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (!live->restored()) return WrongState("cairn_saved_blob before cairn_restore");
    std::string_view bytes;
    const int code = Report(live->SavedBlob(name, member, &bytes));
    if (!bytes.empty()) *data = bytes.data();
    *size = bytes.size();
    return code;
  });
}

CAIRN_API int cairn_add_output(cairn_session* session, const char* path) {
  return Guard([&] {
    if (path == nullptr) return Report({Code::kInvalid, "cairn_add_output: path is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restored()) return WrongState("cairn_add_output after cairn_restore: add everything before");
    return Report(live->items().AddOutput(path));
  });
}

CAIRN_API int cairn_on_copy(cairn_session* session, void (*collect)(void* user), void* user) {
  return Guard([&] {
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    live->OnCopy(collect == nullptr ? std::function<void()>() : [collect, user] { collect(user); });
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_refuse_copy(cairn_session* session, const char* why) {
  return Guard([&] {
    if (why == nullptr) return Report({Code::kInvalid, "cairn_refuse_copy: why is NULL"});
    cairn::Session* const live = Live(session);
    if (live != nullptr) live->RefuseCopy(why);
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_update_item(cairn_session* session, int item, int piece, void* data) {
  return Guard([&] {
    cairn::Session* const live = Live(session);
    return live == nullptr ? CAIRN_OK + 0 : Report(live->items().Update(item, piece, data));
  });
}

CAIRN_API int cairn_update(cairn_session* session, const char* name, int piece, void* data) {
  return Guard([&] {
    if (name == nullptr) return Report({Code::kInvalid, "cairn_update: name is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    const auto item = live->items().Find(name);
    return item.ok() ? Report(live->items().Update(*item, piece, data)) : Report(item.status());
  });
}

CAIRN_API int cairn_set_load(cairn_session* session, const cairn_load_options* options) {
  return Guard([&] {
    if (options == nullptr || options->struct_size < sizeof(cairn_load_options)) {
      return Report(
          {Code::kInvalid, "cairn_set_load: options->struct_size is not sizeof(cairn_load_options)"});
    }
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun()) return WrongState("cairn_set_load in or after cairn_restore: say it before");
    if ((options->match & ~(CAIRN_MATCH_ALLOW_MISSING | CAIRN_MATCH_ALLOW_EXTRA)) != 0)
      return Report({Code::kInvalid, "cairn_set_load: match is no union of CAIRN_MATCH_*"});
    cairn::MatchOptions match;
    match.allowed = static_cast<uint32_t>(options->match);
    for (int i = 0; i < options->rename_count; ++i) {
      const cairn_rename& rename = options->renames[i];
      match.renames.push_back({rename.saved != nullptr ? rename.saved : "",
                               rename.registered != nullptr ? rename.registered : ""});
    }
    for (int i = 0; i < options->only_count; ++i)
      match.only.emplace_back(options->only[i] != nullptr ? options->only[i] : "");
    const Status checked = cairn::CheckMatchOptions(match);
    if (checked.ok()) live->SetMatch(std::move(match));
    return Report(checked.Annotate("cairn_set_load"));
  });
}

CAIRN_API int cairn_set_load_planner(cairn_session* session, const cairn_load_planner* planner) {
  return Guard([&] {
    if (planner == nullptr || planner->struct_size < sizeof(cairn_load_planner)) {
      return Report(
          {Code::kInvalid, "cairn_set_load_planner: planner->struct_size is not sizeof(cairn_load_planner)"});
    }
    if (planner->set_up == nullptr)
      return Report({Code::kInvalid, "cairn_set_load_planner: planner->set_up is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (live->restore_begun())
      return WrongState("cairn_set_load_planner in or after cairn_restore: say it before");
    live->SetPlanner(*planner);
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_restored_difference(cairn_session* session, int index, cairn_difference* difference) {
  return Guard([&] {
    if (difference == nullptr || difference->struct_size < sizeof(cairn_difference)) {
      return Report({Code::kInvalid,
                     "cairn_restored_difference: difference->struct_size is not sizeof(cairn_difference)"});
    }
    cairn::Session* const live = Live(session);
    const size_t count = live != nullptr ? live->differences().size() : 0;
    if (index < 0 || static_cast<size_t>(index) >= count) {
      return Report({Code::kInvalid, "cairn_restored_difference: there is no difference " +
                                         std::to_string(index) + " of " + std::to_string(count)});
    }
    const cairn::ItemDifference& found = live->differences()[static_cast<size_t>(index)];
    difference->kind = found.kind;
    difference->name = found.name.c_str();
    difference->saved_name = found.saved_name.c_str();
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_restore(cairn_session* session, cairn_report* report) {
  return Guard([&] {
    if (report != nullptr && report->struct_size < sizeof(cairn_report)) {
      return Report({Code::kInvalid, "cairn_restore: report->struct_size is not sizeof(cairn_report)"});
    }
    cairn_report result{};
    if (cairn::Session* const live = Live(session); live != nullptr) {
      if (live->restore_begun()) return WrongState("cairn_restore was called twice");
      auto restored = live->Restore();
      if (!restored.ok()) return Report(restored.status());
      result = *restored;
    }
    result.struct_size = sizeof(cairn_report);
    if (report != nullptr) *report = result;
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_step(cairn_session* session, int64_t label) {
  cairn::Session* const live = Live(session);
  if (live == nullptr) return CAIRN_OK;
  return Guard([&] {
    if (!live->restored()) return WrongState("cairn_step before cairn_restore");
    live->Step(label);
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_fence(cairn_session* session) {
  return Guard([&] {
    if (cairn::Session* const live = Live(session); live != nullptr) live->Fence();
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_set_stream(cairn_session* session, int device, void* stream) {
  return Guard([&] {
    cairn::Session* const live = Live(session);
    return live == nullptr ? CAIRN_OK + 0 : Report(live->items().SetStream(device, stream));
  });
}

CAIRN_API int cairn_quiet_begin(cairn_session* session) {
  return Guard([&] {
    if (cairn::Session* const live = Live(session); live != nullptr) live->QuietBegin();
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_quiet_end(cairn_session* session) {
  return Guard([&] {
    if (cairn::Session* const live = Live(session); live != nullptr) live->QuietEnd();
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_save(cairn_session* session, const char* tag) {
  return Guard([&] {
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (!live->restored()) return WrongState("cairn_save before cairn_restore");
    const std::string name = tag == nullptr ? "" : tag;
    if (!name.empty() && !cairn::names::IsValidTag(name)) {
      return Report(
          {Code::kInvalid,
           "cairn_save: a tag is 1 to 100 of [A-Za-z0-9._+=-], not beginning with a dot: \"" + name + "\""});
    }
    live->Save(name);
    return CAIRN_OK + 0;
  });
}

CAIRN_API int cairn_metric(cairn_session* session, const char* name, double value) {
  return Guard([&] {
    if (name == nullptr) return Report({Code::kInvalid, "cairn_metric: name is NULL"});
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (!live->restored()) return WrongState("cairn_metric before cairn_restore");
    return Report(live->SetMetric(name, value));
  });
}

CAIRN_API int cairn_wait(cairn_session* session, int timeout_ms) {
  return Guard([&] {
    cairn::Session* const live = Live(session);
    if (live == nullptr) return CAIRN_OK + 0;
    if (!live->restored()) return WrongState("cairn_wait before cairn_restore");
    return Report(
        live->Wait(timeout_ms < 0 ? std::nullopt : std::optional(std::chrono::milliseconds(timeout_ms))));
  });
}

CAIRN_API int cairn_finalize(cairn_session** session) {
  return Guard([&] {
    if (session == nullptr || *session == nullptr) return CAIRN_OK + 0;
    cairn_session* const closing = *session;
    *session = nullptr;
    OpenSessions::Get().Remove(closing);
    Status status;
    if (cairn::Session* const live = Live(closing); live != nullptr) {
      if (live->restored()) status = live->Finalize();
    } else {
      (void)closing->impl.release();  // a forked child owns no threads: its copy is left alone
    }
    delete closing;
    return Report(status);
  });
}

}  // extern "C"
