// SrunCommand: a command line of srun, read as srun reads it: which words are its own options, what is their value, and where the program begins.
// Pure.
//
// srun leaves off at the first word that is no option. An option that must have a value takes the next word where none is joined to it; one whose
// value may be left out never does. The options of Cairn's plugin are known; those of other SPANK plugins count as having a value.
#ifndef CAIRN_RUNTIME_SUPERVISOR_SRUN_OPTIONS_H_
#define CAIRN_RUNTIME_SUPERVISOR_SRUN_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cairn {

struct SrunOption {
  std::string name;  // "--nodelist", also where an unambiguous beginning of it was written; "-w"
  std::optional<std::string> value;  // nothing where none is given
  size_t word = 0;                   // where it stands in the command; several short ones may share a word
  size_t words = 1;                  // 2: the value is the next word
};

struct SrunCommand {
  std::vector<SrunOption> options;
  size_t options_end =
      1;  // the program's place, or that of "--"; the command's size where there is no program

  // As Slurm will name the step: --job-name, else after the program. "" where there is no program.
  std::string step_name;
};

// `command`: srun, and what follows it.
SrunCommand ReadSrunCommand(const std::vector<std::string>& command);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_SRUN_OPTIONS_H_
