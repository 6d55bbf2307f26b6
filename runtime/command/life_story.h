// LifeStory for people and for programs: see runtime/catalog/lives.h for where it comes from. Pure; any thread.
#ifndef CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_
#define CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/catalog/lives.h"

namespace cairn {

// Fills in the end of a life of which the journal says none: "left", "killed" or "open". `left`: its sign of life says that it went in good
// order. `newest`: no later life is known.
void GuessEnd(LifeStory* life, bool left, bool newest);

// What is different from the life before, one text for each: "4 -> 2 ranks", "program rebuilt". What one of the two did not tell is not compared.
std::vector<std::string> Changes(const LifeStory& before, const LifeStory& life);

// Some lines for a person. `before`: the life before it, null = there is none.
std::string Tell(const LifeStory& life, const LifeStory* before);

nlohmann::ordered_json LifeJson(const LifeStory& life, const LifeStory* before);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_
