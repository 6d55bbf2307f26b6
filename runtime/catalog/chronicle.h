// Chronicle: a run's journal (journal.h) in order of time: how far each life came by when, and how each save went. For pictures of a run.
//
// Pure. Times are milliseconds since 1970 by the clock of rank 0's node, which may be another one in each life; 0 = the journal does not tell.
#ifndef CAIRN_RUNTIME_CATALOG_CHRONICLE_H_
#define CAIRN_RUNTIME_CATALOG_CHRONICLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/catalog/lives.h"

namespace cairn {

// How far a life was at some time.
struct Mark {
  int64_t time_ms = 0;
  int64_t step = 0;
};

struct LifeCourse {
  LifeStory story;                    // as TellLives tells it
  int64_t began_ms = 0, last_ms = 0;  // of its first and last event
  bool restored = false;              // it came to the end of its restore
  int64_t first_step = 0;             // from which it went on; 0 = fresh
  int64_t last_step = 0;              // how far it came at least
  bool last_is_known = false;         // it came no further: it ended with a word
  int64_t saved_ranks = 0;            // that saved what it went on from; 0 = fresh, or not told
  uint64_t read_bytes = 0,
           near_bytes = 0;  // of its restore: from files, and how much of this from the memory of nodes
  int64_t restore_ns = 0;
  int64_t lost_steps = 0;   // behind the checkpoint that the next life went on from, at least
  std::vector<Mark> marks;  // steps rise with time
};

struct SaveCourse {
  uint32_t epoch = 0;
  std::string trigger;
  std::string checkpoint;  // "" = it was given up, or is under way
  std::string why;         // it was given up; "" = it was not
  int64_t step = 0, label = 0;
  uint64_t bytes = 0;
  int64_t asked_ms = 0, staged_ms = 0, partner_ms = 0, ended_ms = 0;
  int64_t wait_ns = 0, stall_ns = 0, drain_ns = 0, durable_ns = 0;
  bool rescued = false;  // a snapshot of an earlier life, made durable by this one
  bool pruned = false;

  bool durable() const { return !checkpoint.empty(); }
};

struct Chronicle {
  std::vector<LifeCourse> lives;  // by epoch
  std::vector<SaveCourse> saves;  // in order of events
};

Chronicle TellChronicle(std::string_view journal);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_CHRONICLE_H_
