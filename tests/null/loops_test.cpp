// No loop without a bound: kernels state the bounds of their loops, and a loop
// that goes beyond its own fails its batch (pipeline/reports.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jit/emit.h"
#include "null/fake_kernels.h"
#include "null/text.h"
#include "pipeline/cut_loops.h"
#include "pipeline/reports.h"
#include "pipeline/sources.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "variants/compile.h"
#include "variants/variants.h"

using namespace mlx::core::vulkan;

namespace {

// Blanks for comments; lines stay.
std::string without_comments(std::string text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    bool line = text.compare(i, 2, "//") == 0;
    if (line || text.compare(i, 2, "/*") == 0) {
      auto end = line ? text.find('\n', i) : text.find("*/", i);
      end = std::min(end, text.size());
      for (size_t k = i; k < std::min(end + (line ? 0 : 2), text.size()); ++k) {
        text[k] = text[k] == '\n' ? '\n' : ' ';
      }
    }
  }
  return text;
}

std::string trimmed(std::string_view s) {
  auto blank = " \t\n\\";
  auto first = s.find_first_not_of(blank);
  return first == s.npos
      ? std::string()
      : std::string(s.substr(first, s.find_last_not_of(blank) + 1 - first));
}

// The parts between parentheses that open at `open`, split at `separator`.
std::vector<std::string>
parts(std::string_view text, size_t open, char separator) {
  std::vector<std::string> out;
  size_t begin = open + 1;
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth == 0 || (depth == 1 && text[i] == separator)) {
      out.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    if (depth == 0) {
      break;
    }
  }
  return out;
}

// What is wrong with the loops of a source, one "line N: ..." each. A `for`
// has a condition and a step; any other loop is a BOUNDED_WHILE that begins
// its line and fits on it, since a report names the line.
std::vector<std::string> bad_loops(const std::string& source) {
  auto text = without_comments(source);
  std::vector<std::string> bad;
  auto word = [](char c) { return std::isalnum(uint8_t(c)) || c == '_'; };
  uint32_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    line += text[i] == '\n';
    if (!word(text[i]) || (i > 0 && word(text[i - 1]))) {
      continue;
    }
    size_t end = i;
    while (end < text.size() && word(text[end])) {
      ++end;
    }
    auto name = text.substr(i, end - i);
    auto complain = [&](const std::string& problem) {
      bad.push_back("line " + std::to_string(line) + ": " + problem);
    };
    if (name == "while" || name == "do") {
      complain(name);
    } else if (name == "for") {
      auto head = parts(text, std::min(text.find('(', end), text.size()), ';');
      if (head.size() != 3 || head[1].empty() || head[2].empty()) {
        complain("for without condition or step");
      }
    } else if (name == "BOUNDED_WHILE") {
      auto from = text.rfind('\n', i) + 1; // 0 in the first line
      auto whole = text.substr(from, text.find('\n', i) - from);
      auto arguments = parts(whole, whole.find('('), ',');
      if (!trimmed(text.substr(from, i - from)).empty() ||
          arguments.size() != 2 || arguments[1].empty()) {
        complain("BOUNDED_WHILE not alone on its line, or without bound");
      }
    }
  }
  return bad;
}

// Every file under src/kernels.
std::set<std::string> all_files() {
  std::set<std::string> files;
  for (auto& file : kernel_files()) {
    files.insert(file);
    for (auto& part : included_sources(*read_source(file))) {
      files.insert(part.name);
    }
  }
  return files;
}

bool has_constants(const std::vector<uint32_t>& spirv) {
  constexpr uint32_t OpSpecConstant = 50;
  for (size_t i = 5; i < spirv.size(); i += spirv[i] >> 16) {
    if ((spirv[i] & 0xffff) == OpSpecConstant) {
      return true;
    }
  }
  return false;
}

} // namespace

TEST_CASE("loops: what counts as a loop without a bound") {
  auto count = [](const char* text) { return bad_loops(text).size(); };
  CHECK(count("while (a < b) {\n}") == 1);
  CHECK(count("do { a++; } while (a < b);") == 2);
  CHECK(count("for (;;) {}") == 1);
  CHECK(count("for (uint i = 0; ; ++i) {}") == 1);
  CHECK(count("for (uint low = 0; low < high; ) {}") == 1);
  CHECK(count("#define EACH for (uint i = f(0);; \\\n i++)") == 1);
  CHECK(count("  BOUNDED_WHILE(a < b) {") == 1);
  CHECK(count("  BOUNDED_WHILE(a <\n b, 3) {") == 1);
  CHECK(count("if (c) BOUNDED_WHILE(a < b, 3) {") == 1);
  CHECK(count("  BOUNDED_WHILE(max(a, b) < c, f(3, 4)) {") == 0);
  CHECK(count("for (; i < min(n, 4); i += 2) {} // while it is there") == 0);
  CHECK(count("/* do\n while */ uint do_it = 3; UNROLL for (a; b; c)") == 0);
  CHECK(bad_loops("\n/* \n */\nwhile (a)").front() == "line 4: while");
}

TEST_CASE("loops: kernels have none without a bound") {
  auto files = all_files();
  CHECK(files.size() > 60);
  CHECK(files.count("common/atomics.glsl"));
  size_t loops = 0;
  for (auto& file : files) {
    auto text = *read_source(file);
    if (file == "common/loops.glsl") {
      continue; // the macro itself
    }
    for (auto& bad : bad_loops(text)) {
      FAIL_CHECK(file << ", " << bad);
    }
    for (auto& loop : source_loops(file, text)) {
      loops += loop.file == file;
    }
  }
  CHECK(loops >= 7);
}

TEST_CASE("loops: generated kernels have none without a bound") {
  FusedGraph g;
  g.inputs = {{Type::f32}, {Type::i32, false, true, 3}, {Type::f32, true}};
  g.ops = {{Type::f32, "Add", {0, 2}}, {Type::f32, "", {1}}};
  g.outputs = {3, 4};
  auto text = emit_fused(g);
  CHECK(has(text, "common/elementwise.glsl")); // its loops are seen above
  for (auto& bad : bad_loops(text)) {
    FAIL_CHECK(bad);
  }
}

TEST_CASE("loops: they count in the debug mode only, and compile there") {
  size_t kernels = 0;
  for (auto& file : kernel_files()) {
    auto text = *read_source(file);
    if (source_loops(file, text).empty()) {
      continue;
    }
    auto name = file.substr(0, file.size() - 5);
    std::vector<AnyVariant> variants;
    for (auto& v : all_variants().all()) {
      if (v.file == name) {
        variants.push_back(v);
      }
    }
    REQUIRE(!variants.empty());
    bool counted = false;
    for (auto& v : {variants.front(), variants.back()}) {
      CAPTURE(file);
      CHECK_FALSE(has_constants(compile_kernel(name, v.defines).spirv));
      NamedValues mode{{"LOOP_LIMIT", "32768"}};
      counted |=
          has_constants(compile_kernel(name, v.defines, false, mode).spirv);
    }
    kernels += counted;
  }
  CHECK(kernels >= 5);
}

TEST_CASE("loops: where a source has them") {
  auto loops = source_loops(
      "a.comp",
      "// BOUNDED_WHILE(x, 1)\n#include \"common/power.glsl\"\n"
      "  BOUNDED_WHILE(x, 1) {\n");
  REQUIRE(loops.size() == 3);
  CHECK(loops[0] == SourceLoop{"a.comp", 3});
  std::set<std::string> included{loops[1].file, loops[2].file};
  CHECK(
      included ==
      std::set<std::string>{"common/power.glsl", "common/power64.glsl"});
}

TEST_CASE("loops: who has reported cut loops is named, once") {
  auto memory = std::make_shared<CutLoops::Memory>();
  CutLoops loops(memory, 1);
  CHECK(loops.add_kernel("[metal_kernel] a", "line 2 of the body") == 1);
  CHECK(loops.add_kernel("[metal_kernel] b", "line 7 of the header") == 2);
  loops.check();
  memory->kernel = 2;
  std::string error;
  try {
    loops.check();
  } catch (const std::runtime_error& e) {
    error = e.what();
  }
  CHECK(has(error, "[metal_kernel] b: in one thread its loops (line 7 of the"));
  loops.check();
  // What a kernel reads says that a loop has turned twice, if it has.
  for (uint32_t turns : {0, 1, 2}) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < turns; ++i) {
      at = memory->next[at];
    }
    CHECK(memory->cut[at] == (turns < 2));
  }
}

TEST_CASE("loops: beyond the bound, the batch fails and names the loop") {
  for (bool discrete : {false, true}) {
    fake::Settings settings;
    settings.float16 = false; // no probe
    settings.discrete = discrete;
    fake::reset(settings);
    Device d;
    REQUIRE(d.reports() == nullptr);
    d.watch_kernels(Reports::Loops);
    Buffer* z = d.memory().allocate(700 * 4, Placement::Host);
    {
      Encoder enc(d, 0), other(d, 1);
      fake::dispatch_mix(enc, fake::mix(d.pipelines()), z, 1);
      auto good = enc.close();
      good->wait();
      CHECK(good->error().empty());

      fake::dispatch_mix(enc, fake::mix_endless(d.pipelines()), z, 2);
      bool retired = false;
      auto endless = enc.close([&] { retired = true; });
      endless->wait_retired();
      CHECK(retired);
      CAPTURE(endless->error());
      CHECK(has(endless->error(), "MLX_VK_DEBUG=loops"));
      CHECK(has(endless->error(), "kernel mix_endless"));
      CHECK(has(endless->error(), "loop at mix_endless:7 "));
      CHECK(has(endless->error(), "bound of 9 turns"));

      // Who depends on it hears of it; what comes later does not.
      other.wait({nullptr, 0, endless});
      fake::dispatch_mix(other, fake::mix(d.pipelines()), z, 3);
      auto dependent = other.close();
      dependent->wait();
      CHECK(dependent->error() == endless->error());
      fake::dispatch_mix(enc, fake::mix(d.pipelines()), z, 4);
      auto next = enc.close();
      next->wait();
      CHECK(next->error().empty());
      CHECK(static_cast<uint32_t*>(d.memory().host_pointer(*z))[5] == 4);
    }
    d.memory().release(z);
    CHECK(fake::errors().empty());
  }
  CHECK(fake::statistics().live_buffers == 0);
}

TEST_CASE("loops: unwatched, kernels are told no address") {
  fake::Settings settings;
  settings.float16 = false;
  fake::reset(settings);
  Device d;
  Buffer* z = d.memory().allocate(700 * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    fake::dispatch_mix(enc, fake::mix_endless(d.pipelines()), z, 2);
    auto done = enc.close();
    done->wait();
    CHECK(done->error().empty());
  }
  d.memory().release(z);
}

TEST_CASE("bounds: an index outside and an access of a Metal kernel are told") {
  auto memory = std::make_shared<ReportMemory>();
  KernelReports reports(Reports::Bounds, memory, 4096, Caps{});
  CHECK(reports.bounds());
  CHECK(!reports.loops());
  auto constants = reports.add_kernel("gather{I=i32}", "a.comp", "");
  CHECK(constants.address == 4096);
  CHECK(constants.kernel == 1);
  std::string text =
      "struct Arguments {\n  uint64_t a0; // x\n  uint64_t a1; // y\n};\n";
  CHECK(reports.add_kernel("own", "own", text).kernel == 2);
  auto told = [&] {
    try {
      reports.check("Take of (10)");
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(told().empty());

  memory->index_kernel = 1;
  memory->index_signed = 1;
  memory->index = uint64_t(-11);
  memory->position = 2;
  memory->size = 10;
  auto error = told();
  CAPTURE(error);
  CHECK(has(error, "in Take of (10), the index -11 at position 2 "));
  CHECK(has(error, "an axis of 10 items (kernel gather{I=i32})"));
  CHECK(told().empty()); // once

  memory->index_kernel = 1;
  memory->index = uint64_t(1) << 63;
  error = told();
  CHECK(has(error, "the index 9223372036854775808 at"));

  memory->index_kernel = 2;
  memory->index = uint64_t(-8);
  memory->position = 1;
  memory->line = 7 | 1u << 31;
  memory->bytes = 16;
  error = told();
  CHECK(has(error, "line 7 of the header of own reads or writes 16 bytes at "));
  CHECK(has(error, "at byte -8 of `y`"));
}
