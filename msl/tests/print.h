// MSL's tree (msl/ast.h) as one line of text, for tests.
#pragma once

#include <string>

#include "msl/ast.h"

namespace msl {

std::string print(const Type& type);
std::string print(const Expr& expr);
std::string print(const Stmt& stmt);
std::string print(const Declaration& declaration);
std::string print(const Unit& unit);

} // namespace msl
