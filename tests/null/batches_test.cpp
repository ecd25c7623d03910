// Batches of models recorded on a software device: the same records are joined
// by the same rules, the others miss for the same reasons, and what joins them
// is the same kernel. tests/null/batches/record.py writes them.
#include <doctest/doctest.h>

#include <filesystem>

#include "null/batch_text.h"

using namespace rewriting;

namespace {

// The rest of a line: "PLACE KERNEL | why".
struct End {
  std::string place, kernel, why;
  explicit End(const std::string& text) {
    std::istringstream in(text);
    in >> place;
    std::getline(in, kernel, '|');
    std::getline(in, why);
  }
};

// As a software device joins: its heads are few.
std::vector<std::string> joined(RecordedBatch& batch) {
  Kernels kernels;
  kernels.most_heads = 128;
  SelectLog log(batch.records, batch.accesses, batch.arguments);
  rewrite(batch.records, batch.accesses, batch.arguments, kernels, &log);
  std::istringstream text(log.text(batch.records));
  std::string line;
  std::getline(text, line);
  std::vector<std::string> ends;
  while (std::getline(text, line)) {
    size_t bar = 0;
    for (int i = 0; i < 3; ++i) {
      bar = line.find('|', bar) + 1;
    }
    ends.push_back(line.substr(bar));
  }
  return ends;
}

void check(const std::filesystem::path& file) {
  CAPTURE(file.filename().string());
  std::ifstream in(file);
  std::string line;
  size_t batches = 0, groups = 0;
  while (std::getline(in, line)) {
    unsigned count = 0, run = 0;
    if (std::sscanf(
            line.c_str(),
            "[mlx-vulkan] select: %u records, %u run",
            &count,
            &run) != 2) {
      continue;
    }
    ++batches;
    RecordedBatch batch(in, count);
    auto ends = joined(batch);
    CHECK(batch.records.size() == run);
    REQUIRE(ends.size() == count);
    for (size_t i = 0; i < count; ++i) {
      CAPTURE(i);
      End now(ends[i]), then(batch.ends[i]);
      CHECK(now.place == then.place);
      CHECK(now.why == then.why);
      if (now.why.find_first_not_of(' ') != std::string::npos &&
          now.place != std::to_string(i)) {
        CHECK(now.kernel == then.kernel);
        ++groups;
      }
    }
  }
  CHECK(batches > 0);
  CHECK(groups > 0);
}

} // namespace

TEST_CASE("batches: those of models are joined as they were") {
  size_t files = 0;
  for (auto& entry : std::filesystem::directory_iterator(MLXVK_BATCHES)) {
    if (entry.path().extension() == ".txt") {
      check(entry.path());
      ++files;
    }
  }
  CHECK(files == 8);
}
