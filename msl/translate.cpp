#include "msl/translate.h"

#include <iterator>

#include "msl/parse.h"
#include "msl/simdgroup_matrix.h"
#include "msl/translator.h"

namespace msl {

namespace {

bool names_matrices(const std::string& text) {
  return text.find("simdgroup_matrix") != text.npos ||
      text.find("8x8") != text.npos;
}

} // namespace

Translator::Translator(
    const Source& source,
    const Target& target,
    const Together& together)
    : source_(source), target_(target), together_(together) {}

Translation Translator::run() {
  std::vector<std::string> types;
  for (auto& t : source_.templates) {
    if (std::holds_alternative<std::string>(t.value)) {
      types.push_back(t.name);
    }
  }
  unit_ = parse(source_.header, source_.body, types);
  if (names_matrices(source_.header) || names_matrices(source_.body)) {
    auto known = parse(simdgroup_matrices, "").declarations;
    std::move(
        unit_.declarations.begin(),
        unit_.declarations.end(),
        std::back_inserter(known));
    unit_.declarations = std::move(known);
  }
  find_collectives(unit_);
  Writing w;
  w.id = ++functions_; // 1, as argument_value() says
  w.is_main = true;
  w.result = types_.nothing();
  writing_ = &w;
  declare_header(unit_);
  // The kernel's arguments hide what the header declares, and are hidden by
  // what the body does.
  scope_ = new_scope(&global_);
  declare_arguments();
  declare_templates();
  scope_ = new_scope(scope_);
  if (unit_.body) {
    w.masked = target_.subgroup < 32 && is_collective(*unit_.body);
    if (w.masked) {
      begin_masks();
    }
    block(unit_.body->statements);
  }
  w.lines.insert(w.lines.begin(), prologue_.begin(), prologue_.end());
  bool independent = independent_ && !uses_simd_;
  if (independent) {
    std::string outside =
        "any(greaterThanEqual(msl_thread_position_in_grid(), A.grid))";
    Line lines[] = {
        {1, "", "if (" + outside + ") {", nullptr, ""},
        {2, "", "return;", nullptr, ""},
        {1, "", "}", nullptr, ""}};
    w.lines.insert(w.lines.begin(), std::begin(lines), std::end(lines));
  }
  std::string name = target_.whole_loops ? "whole_loops_of" : "main";
  written_.push_back({"void " + name + "()", std::move(w.lines)});
  Translation t;
  t.glsl = print();
  t.collective = uses_simd_;
  t.independent = independent;
  t.shared_bytes = shared_bytes_;
  return t;
}

Translation translate(const Source& source, const Target& target) {
  Together together;
  try {
    while (true) {
      try {
        return Translator(source, target, together).run();
      } catch (const Moves& m) {
        if (!together.join(m.one, m.other)) {
          fail_at({}, "pointers between arrays are not resolved.");
        }
      }
    }
  } catch (const Error& e) {
    std::string text = e.what();
    fail_at(
        e.place,
        text.starts_with("[metal_kernel]")
            ? text
            : e.message(source.name, source.header, source.body));
  }
}

std::string with_threads(
    const std::string& glsl,
    const std::array<uint32_t, 3>& threads) {
  auto [x, y, z] = threads;
  constexpr const char* size =
      "#define MSL_LOCAL_COUNT {}\n#define MSL_LOCAL_SIZE "
      "local_size_x = {}, local_size_y = {}, local_size_z = {}\n";
  return fmt(size, x * y * z, x, y, z) + glsl;
}

} // namespace msl
