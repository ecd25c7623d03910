// Tests of instructions. RDNA_LLVM names the disassembler's library.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "rig.h"

int main(int argc, char** argv) {
  if (const char* library = std::getenv("RDNA_LLVM"))
    rdna::set_llvm(library);
  doctest::Context context(argc, argv);
  int status = context.run();
  // Every instruction that the tables have is run by some test.
  if (argc == 1)
    for (const std::string& name : rdna::untested_rows()) {
      std::fprintf(stderr, "no test runs %s\n", name.c_str());
      status = 1;
    }
  return status;
}
