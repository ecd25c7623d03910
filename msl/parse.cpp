#include "msl/parse.h"

#include "msl/parser.h"

namespace msl {

Unit parse(
    std::string_view header,
    std::string_view body,
    std::span<const std::string> types) {
  Arena arena;
  auto source = preprocess(header, body, arena);
  FileNames file;
  Unit unit;
  unit.declarations = Parser(tidy(source.header, arena), file).unit();
  for (const auto& type : types) {
    file.scope.names[type] = Meaning::Type;
  }
  unit.body = Parser(tidy(source.body, arena), file).body();
  return unit;
}

} // namespace msl
