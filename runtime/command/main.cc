// cairn: the command for people, and the host process beside srun.

#include "runtime/command/command_line.h"
#include "runtime/s3/use_s3.h"

int main(int argc, char** argv) {
  cairn::UseS3();
  return cairn::RunCommandLine(argc, argv);
}
