#include "msl/tests/print.h"

namespace msl {

namespace {

template <typename T>
std::string print(const std::unique_ptr<T>& one) {
  return one ? print(*one) : "_";
}

// {a b c}
template <typename List, typename Print>
std::string each(const List& list, Print print_one) {
  std::string out;
  for (const auto& one : list) {
    out += " " + print_one(one);
  }
  return out;
}

std::string print(const std::vector<TemplateArgument>& arguments) {
  if (arguments.empty()) {
    return "";
  }
  std::string out = "<";
  for (const auto& one : arguments) {
    out += out.size() > 1 ? ", " : "";
    out += one.type ? print(*one.type) : "";
    out += one.type && one.value ? "|" : "";
    out += one.value ? print(*one.value) : "";
  }
  return out + ">";
}

std::string print(const Declarator& one) {
  std::string out = print(one.type) + " " + one.name;
  for (const auto& extent : one.extents) {
    out += "[" + (extent ? print(*extent) : "") + "]";
  }
  if (one.value) {
    out += (one.constructed ? " (=) " : " = ") + print(*one.value);
  }
  return out;
}

std::string print(const std::vector<Parameter>& parameters) {
  std::string out = "(";
  for (const auto& one : parameters) {
    out += (out.size() > 1 ? ", " : "") + print(one.declarator);
    for (const auto& attribute : one.attributes) {
      out += " [[" + attribute.name;
      for (const auto& argument : attribute.arguments) {
        out += " " + argument;
      }
      out += "]]";
    }
  }
  return out + ")";
}

std::string children(const Expr& expr) {
  return each(expr.children, [](const auto& one) { return print(*one); });
}

std::string print(const TemplateParameter& one) {
  return (one.is_type ? "type" : print(one.type)) + " " + one.name +
      (one.default_type ? " = " + print(*one.default_type) : "") +
      (one.default_value ? " = " + print(*one.default_value) : "");
}

std::string print_loop(const Stmt& stmt) {
  std::string head =
      stmt.unroll ? "unroll " + std::to_string(stmt.unroll) + " " : "";
  switch (stmt.kind) {
    case Stmt::Kind::For:
      return head + "for (" + print(stmt.init) + "; " + print(stmt.expr) +
          "; " + print(stmt.step) + ") " + print(stmt.body);
    case Stmt::Kind::While:
      return head + "while " + print(stmt.expr) + " " + print(stmt.body);
    default:
      return head + "do " + print(stmt.body) + " while " + print(stmt.expr);
  }
}

} // namespace

std::string print(const Type& type) {
  static constexpr const char* spaces[] = {
      "", "device ", "constant ", "threadgroup ", "thread "};
  std::string out = spaces[int(type.space)];
  out += type.is_const ? "const " : "";
  out += type.is_volatile ? "volatile " : "";
  out += type.scope ? print(*type.scope) + "::" : "";
  out += type.name + print(type.arguments);
  out += type.of ? "(" + print(*type.of) + ")" : "";
  return out + std::string(type.pointers, '*') + (type.reference ? "&" : "");
}

std::string print(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::Number:
      return expr.text;
    case Expr::Kind::Name:
      return (expr.type ? print(*expr.type) + "::" : "") + expr.text +
          print(expr.arguments);
    case Expr::Kind::Postfix:
      return "(" + print(*expr.children[0]) + " " + expr.text + ")";
    case Expr::Kind::Unary:
    case Expr::Kind::Binary:
    case Expr::Kind::Assign:
      return "(" + expr.text + children(expr) + ")";
    case Expr::Kind::Conditional:
      return "(?" + children(expr) + ")";
    case Expr::Kind::Call:
      return "(call" + children(expr) + ")";
    case Expr::Kind::Index:
      return "(at" + children(expr) + ")";
    case Expr::Kind::Member:
      return "(" + std::string(expr.arrow ? "->" : ".") + expr.text +
          print(expr.arguments) + children(expr) + ")";
    case Expr::Kind::Cast:
      return "(cast" + (expr.text.empty() ? "" : ":" + expr.text) + " <" +
          print(*expr.type) + ">" + children(expr) + ")";
    case Expr::Kind::Construct:
      return "(make <" + print(*expr.type) + ">" + children(expr) + ")";
    case Expr::Kind::List:
      return "{" + children(expr) + " }";
    case Expr::Kind::Sizeof:
      return "(sizeof" + (expr.type ? " <" + print(*expr.type) + ">" : "") +
          children(expr) + ")";
    case Expr::Kind::Lambda:
      return "(lambda " + print(expr.parameters) +
          (expr.type ? " -> " + print(*expr.type) : "") + " " +
          print(expr.body) + ")";
  }
  return "?";
}

std::string print(const Stmt& stmt) {
  auto all = [](const Stmt& of) {
    return each(of.statements, [](const auto& one) { return print(*one); });
  };
  switch (stmt.kind) {
    case Stmt::Kind::Block:
      return "{" + all(stmt) + " }";
    case Stmt::Kind::Declare:
      return std::string("let") + (stmt.is_static ? " static" : "") +
          (stmt.is_constexpr ? " constexpr" : "") +
          each(stmt.declarators, [](const auto& d) { return print(d) + ";"; });
    case Stmt::Kind::Expression:
      return print(stmt.expr) + ";";
    case Stmt::Kind::If:
      return std::string("if ") + (stmt.is_constexpr ? "constexpr " : "") +
          print(stmt.expr) + " " + print(stmt.body) +
          (stmt.other ? " else " + print(stmt.other) : "");
    case Stmt::Kind::For:
    case Stmt::Kind::While:
    case Stmt::Kind::DoWhile:
      return print_loop(stmt);
    case Stmt::Kind::Switch:
      return "switch " + print(stmt.expr) + " " + print(stmt.body);
    case Stmt::Kind::Case:
      return (stmt.expr ? "case " + print(stmt.expr) : "default") + ":" +
          all(stmt);
    case Stmt::Kind::Break:
      return "break;";
    case Stmt::Kind::Continue:
      return "continue;";
    case Stmt::Kind::Return:
      return "return" + (stmt.expr ? " " + print(stmt.expr) : "") + ";";
    case Stmt::Kind::Struct:
    case Stmt::Kind::Using:
      return print(*stmt.declared);
    case Stmt::Kind::StaticAssert:
      return "assert " + print(stmt.expr) + " \"" + stmt.text + "\";";
    case Stmt::Kind::Empty:
      return ";";
  }
  return "?";
}

std::string print(const Declaration& one) {
  std::string out;
  if (!one.parameters.empty()) {
    out = "template <" +
        each(one.parameters, [](const auto& p) { return print(p) + ";"; }) +
        " > ";
  }
  out += one.specialization ? "special " : "";
  out += one.is_static ? "static " : "";
  out += one.is_constexpr ? "constexpr " : "";
  switch (one.kind) {
    case Declaration::Kind::Function:
      out += "fn " + print(one.result) + " " + one.name +
          print(one.specialized) + print(one.takes) +
          (one.is_const ? " const" : "");
      out += each(one.initializers, [](const auto& i) {
        return ":" + i.first + print(*i.second);
      });
      return out + " " + print(one.body);
    case Declaration::Kind::Struct:
      return out + "struct " + one.name + print(one.specialized) + " {" +
          each(one.types, [](const auto& t) { return print(t); }) +
          each(one.fields,
               [](const auto& f) {
                 return (f.is_static ? "static " : "") + print(f) + ";";
               }) +
          each(one.methods, [](const auto& m) { return print(m); }) + " }";
    case Declaration::Kind::Using:
      return out + "using " + one.name + " = " + print(one.result) + ";";
    case Declaration::Kind::Constant:
      return out + "const " + print(one.constant) + ";";
    case Declaration::Kind::StaticAssert:
      return out + "assert " + print(one.constant.value) + " \"" + one.name +
          "\";";
  }
  return out;
}

std::string print(const Unit& unit) {
  std::string out;
  for (const auto& one : unit.declarations) {
    out += print(one) + "\n";
  }
  return out + print(*unit.body);
}

} // namespace msl
