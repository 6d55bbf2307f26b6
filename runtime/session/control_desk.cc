#include "runtime/session/control_desk.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/formats/names.h"

namespace cairn {
namespace {

using nlohmann::json;

// What a client sent may come back in `why`, and it need not be UTF-8.
std::string Text(const json& body) { return body.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

void ControlDesk::OnRequest(const ControlRequest& request) {
  const json body = json::parse(request.body, nullptr, false);
  const auto text = [&](const char* name) {
    return body.is_object() && body.contains(name) && body[name].is_string() ? body[name].get<std::string>()
                                                                             : "";
  };
  const std::string op = text("op"), tag = text("tag"), nodes = text("nodes");
  if (op == "status") return links_.reply({.id = request.id, .body = links_.status()});
  std::string why;
  if (op == "resize") {
    why = nodes.empty() ? "it does not say to which nodes" : links_.why_not_resize();
    if (why.empty()) why = links_.why_not();
  } else if (op != "save") {
    why = "unknown request";
  } else if (!tag.empty() && !names::IsValidTag(tag)) {
    why = "no such tag is possible: " + tag;
  } else {
    why = links_.why_not();
  }
  if (!why.empty()) {
    return links_.reply({.id = request.id, .body = Text({{"saved", false}, {"why", why}})});
  }
  waiting_[request.id] = {.tag = tag, .nodes = op == "resize" ? nodes : ""};
  links_.ask(tag);
}

void ControlDesk::OnNumbered(const std::string& tag, uint64_t number) {
  // One that the program made with the same tag stands for the same thing.
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    return entry.second.number == 0 && entry.second.tag == tag;
  });
  if (it != waiting_.end()) it->second.number = number;
}

void ControlDesk::OnSaveEnded(const agreement::SaveEnded& ended, const std::string& checkpoint) {
  std::string resize;
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& [id, waiting] = entry;
    if (std::find(ended.requests.begin(), ended.requests.end(), waiting.number) == ended.requests.end())
      return false;
    json body = {{"saved", ended.status.ok() && !checkpoint.empty()}};
    if (!ended.status.ok()) {
      body["why"] = ended.status.message();
    } else if (checkpoint.empty()) {  // all are final, at the very step that was restored
      body["why"] = "the run is at its end, and has not moved since it was resumed";
    } else {
      body["step"] = ended.count;
      body["checkpoint"] = checkpoint;
    }
    if (body["saved"] == true && !waiting.nodes.empty()) resize = waiting.nodes;
    links_.reply({.id = id, .body = Text(body)});
    return true;
  });
  if (!resize.empty()) links_.resize(resize);
}

}  // namespace cairn
