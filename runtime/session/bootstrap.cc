#include "runtime/session/bootstrap.h"

#include <unistd.h>

#include <charconv>

#include "runtime/formats/manifest.h"
#include "runtime/version.h"

namespace cairn {
namespace {

std::optional<int> ToInt(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// SLURM_STEP_TASKS_PER_NODE is "4(x2),3": the tasks of the node with position SLURM_NODEID.
int TasksOnNode(const GetEnv& get) {
  const std::string text = get("SLURM_STEP_TASKS_PER_NODE").value_or("1");
  const int node = ToInt(get("SLURM_NODEID")).value_or(0);
  int position = 0;
  size_t at = 0;
  while (at < text.size()) {
    int tasks = 0, repeat = 1;
    auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), tasks);
    at = static_cast<size_t>(parsed.ptr - text.data());
    if (text.compare(at, 2, "(x") == 0) {
      parsed = std::from_chars(text.data() + at + 2, text.data() + text.size(), repeat);
      at = static_cast<size_t>(parsed.ptr - text.data()) + 1;
    }
    position += repeat;
    if (node < position) return std::max(1, tasks);
    at = text.find(',', at);
    if (at == std::string::npos) break;
    ++at;
  }
  return 1;
}

// Where this rank is among those of its node.
struct OnNode {
  int position = 0;
  int count = 1;
};

// Ranks that a launcher has started, below one task of the node or without Slurm, have been counted by themselves (hooks/python) or by torchrun.
OnNode PlaceOnNode(const GetEnv& get) {
  for (const std::string prefix : {"SLURM_CAIRN_LOCAL_", "LOCAL_"}) {
    const auto position = ToInt(get(prefix + "RANK")), count = ToInt(get(prefix + "WORLD_SIZE"));
    if (position && count) return {*position, std::max(1, *count)};
  }
  return {ToInt(get("SLURM_LOCALID")).value_or(0), TasksOnNode(get)};
}

}  // namespace

Result<std::optional<Bootstrap>> ReadBootstrap(const GetEnv& get, int rank, int world_size) {
  const auto token = get("SLURM_CAIRN_TOKEN");
  Bootstrap out;
  CAIRN_ASSIGN_OR_RETURN(out.settings, ParseSettings(get));
  if (!out.settings.enabled) return std::optional<Bootstrap>();
  out.rank = rank >= 0 ? rank : ToInt(get("SLURM_PROCID")).value_or(0);
  out.world_size = world_size > 0 ? world_size : ToInt(get("SLURM_NTASKS")).value_or(1);
  if (!token) {
    // Started by hand: a single process needs nobody to meet.
    if (out.world_size > 1 || out.settings.dir.empty()) return std::optional<Bootstrap>();
    out.key = "0.0.0";
  } else {
    CAIRN_ASSIGN_OR_RETURN(out.token, Secret::FromHex(*token));
    out.rendezvous = get("SLURM_CAIRN_RENDEZVOUS").value_or("");
    out.key = get("SLURM_CAIRN_KEY").value_or("");
    if (out.rendezvous.empty() || out.key.empty()) {
      return Status(Code::kInvalid,
                    "SLURM_CAIRN_TOKEN is set but SLURM_CAIRN_RENDEZVOUS or SLURM_CAIRN_KEY is not: the "
                    "environment was changed on its way. Pass all SLURM_CAIRN_* on to the ranks");
    }
  }
  if (out.rank < 0 || out.rank >= out.world_size) {
    return Status(Code::kInvalid,
                  "rank " + std::to_string(out.rank) + " of " + std::to_string(out.world_size) + " members");
  }
  if (out.settings.dir.empty()) return Status(Code::kInvalid, "no directory for checkpoints: set CAIRN_DIR");
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  out.node = get("SLURM_CAIRN_NODE").value_or(get("SLURMD_NODENAME").value_or(host));
  out.nodes = get("SLURM_STEP_NODELIST").value_or("");
  const OnNode place = PlaceOnNode(get);
  out.first_on_node = place.position == 0;
  out.ranks_on_node = token ? place.count : 1;
  out.epilog_cleans = get("SLURM_CAIRN_EPILOG") == "1";
  // <job>.<step>.<restart>, or 0.0.0 outside Slurm.
  const size_t first = out.key.find('.'), second = out.key.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos) {
    return Status(Code::kInvalid, "SLURM_CAIRN_KEY is not <job>.<step>.<restart>: " + out.key);
  }
  Identity& self = out.identity;
  self.cluster = get("SLURM_CLUSTER_NAME").value_or("");
  self.job = out.key.substr(0, first);
  if (self.job == "0") self.job.clear();
  // Where `cairn run` started the host process, that knew the job alone.
  self.step = get("SLURM_STEP_ID").value_or(out.key.substr(first + 1, second - first - 1));
  self.restart = static_cast<uint32_t>(ToInt(out.key.substr(second + 1)).value_or(0));
  self.node = out.node;
  self.pid = getpid();
  self.uid = getuid();
  self.cairn_version = kVersion;
  self.started = UtcNow();
  out.run_life = get("SLURM_CAIRN_LIFE").value_or("");
  const auto life = ToInt(out.run_life.substr(out.run_life.rfind('.') + 1));
  out.supervised = life.has_value();
  out.min_nodes = ToInt(get("SLURM_CAIRN_MIN_NODES")).value_or(1);
  out.first_life = self.restart == 0 && life.value_or(0) == 0;
  out.known_to_save = get("SLURM_CAIRN_SAVED") == "1";
  return std::optional<Bootstrap>(std::move(out));
}

}  // namespace cairn
