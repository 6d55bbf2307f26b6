// Checks of numbers on the command line, for Argument::Check. Their messages say which numbers are taken. Pure.
#ifndef CAIRN_RUNTIME_COMMAND_NUMBERS_H_
#define CAIRN_RUNTIME_COMMAND_NUMBERS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace cairn {

std::function<std::string(const std::string&)> WholeNumber(int64_t least, int64_t most = INT32_MAX);

// 0 or more, with or without a fraction; no infinity.
std::string NotNegative(const std::string& text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_NUMBERS_H_
