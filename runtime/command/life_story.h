// LifeStory for people and for programs: see runtime/catalog/lives.h for where it comes from. Pure; any thread.
#ifndef CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_
#define CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/catalog/lives.h"

namespace cairn {

// Fills in the end of a life of which the journal says none: "left", "killed" or "open". `left`: its sign of life says that it went in good
// order. `newest`: no later life is known.
void GuessEnd(LifeStory* life, bool left, bool newest);

// Some lines for a person.
std::string Tell(const LifeStory& life);

nlohmann::ordered_json LifeJson(const LifeStory& life);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_
