// Name patterns: text in which each '*' stands for any characters, none included. Pure.
#ifndef CAIRN_RUNTIME_SESSION_NAME_PATTERN_H_
#define CAIRN_RUNTIME_SESSION_NAME_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>

namespace cairn {

bool MatchesPattern(std::string_view pattern, std::string_view name);

// `name` as `replacement` has it, whose n-th '*' takes what the pattern's n-th stood for; each but the last stands for as little as possible.
// Nothing when the pattern does not match. The replacement has at most as many '*' as the pattern.
std::optional<std::string> RenameByPattern(std::string_view pattern, std::string_view replacement,
                                           std::string_view name);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_NAME_PATTERN_H_
