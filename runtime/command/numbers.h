// Checks of numbers on the command line, for CLI::Option::check. Their messages say which numbers are taken. Pure.
#ifndef CAIRN_RUNTIME_COMMAND_NUMBERS_H_
#define CAIRN_RUNTIME_COMMAND_NUMBERS_H_

#include <cstdint>

namespace CLI {
class Validator;
}

namespace cairn {

CLI::Validator WholeNumber(int64_t least, int64_t most = INT32_MAX);

// 0 or more, with or without a fraction; no infinity.
CLI::Validator NotNegative();

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_NUMBERS_H_
