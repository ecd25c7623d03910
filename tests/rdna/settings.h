// What the environment says. tools/driver_lab.py sets all of it but the seed.
#pragma once

#include <cstdint>
#include <string>

namespace rdna {

struct Settings {
  std::string processor; // RDNA_PROCESSOR: LLVM's name, "gfx1100"
  uint32_t gfx; // its major number: 9, 10, 11 or 12
  uint64_t seed; // RDNA_SEED: of the order of waves and workgroups; default 1
  std::string report; // RDNA_REPORT: a folder; a process's faults are in a file
                      // named by its number
  std::string counts; // RDNA_COUNTS: a folder for counts of what is executed
};

// Ends the process if the processor is missing or unknown.
const Settings& settings();

// Tells the user about a fault of the program under test: on standard error,
// and in the folder of the settings.
void report(const std::string& fault);

} // namespace rdna
