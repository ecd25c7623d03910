// The translator's state and steps, each group in its file. Private to msl/.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "msl/moving.h"
#include "msl/record.h"
#include "msl/temporarily.h"
#include "msl/text.h"
#include "msl/translate.h"

namespace msl {

// A line of a GLSL function.
struct Line {
  int indent = 0;
  std::string guard; // runs where this mask is set; empty: everywhere
  std::string text; // after the declared name, if there is one
  Variable* declares = nullptr;
  std::string before; // the declared name: "for ("
};

// A mask of active invocations in emulated SIMD-groups (masks.cpp).
struct Mask {
  std::string name; // a bool
  bool full = true; // all are, so far
};

// A loop or switch, for break and continue.
struct Loop {
  bool is_switch = false;
  bool masked = false;
  std::string lanes; // masked: those still in the loop
  Mask* body = nullptr;
};

// The state of a function that is being written.
struct Writing {
  int id = 0;
  std::vector<Line> lines;
  int indent = 1;
  Ty result = nullptr; // null: to be deduced
  Base* result_base = nullptr;
  Variable* result_variable = nullptr; // masked: return sets it
  bool is_main = false;
  bool constructs = false; // returns result_variable, whatever is written
  bool masked = false; // holds collectives that are emulated
  bool pure = true; // writes only to its own variables
  bool returns = false; // has a return statement
  int plain = 0; // within statements that need no masks
  Mask* live = nullptr; // masked: not yet returned
  Mask* mask = nullptr;
  std::string guard;
  int guard_depth = 0; // braces since the guard began
  std::vector<Loop> loops;
};

// A function for given types and bases.
struct Instance {
  std::string name;
  Ty result = nullptr;
  Base* result_base = nullptr;
  bool masked = false;
  bool pure = true;
  bool busy = true;
};

// The way in which an argument is passed to a function.
struct Passed {
  enum class How : uint8_t { Value, InOut, Address, Offset, Static } how;
  Ty type = nullptr; // of the parameter
  bool reference = false;
};

struct Written {
  std::string header;
  std::vector<Line> lines;
};

// A function that a call may mean, or a lambda.
struct Candidate {
  std::string name;
  const std::vector<Parameter>* parameters = nullptr;
  const Type* result = nullptr; // null: to be deduced
  const Stmt* body = nullptr;
  const Declaration* declared = nullptr; // null: a lambda
  Scope* scope = nullptr; // of its template arguments
  std::vector<Ty> takes;
  std::string key; // of its template arguments
  int cost = 0;
};

using Values = std::vector<Value>;
using TemplateArguments = std::vector<TemplateArgument>;
// A template argument: a type or a number.
using TypeOrNumber = std::variant<Ty, int64_t>;

// The number of arguments of a function of numbers; 0 for other names.
int builtin_arity(std::string_view name);

class Translator {
 public:
  Translator(
      const Source& source,
      const Target& target,
      const Together& together);
  Translation run();

 private:
  // -- names.cpp
  Scope* new_scope(Scope* parent);
  void declare_header(const Unit& unit);
  void declare(Scope& scope, const Declaration& d);
  void declare_arguments();
  void declare_templates();
  Symbol* find(const std::string& name);
  Symbol* find(Scope* scope, const std::string& name, Scope** where = nullptr);
  Symbol* find_qualified(const std::string& name, Scope** where);
  Value name_value(const Expr& e);
  Value symbol_value(Symbol& s, const std::string& name);
  Value lazy_value(Symbol& s, const std::string& name);
  Value argument_value(Symbol& s, size_t index);
  Value attribute_value(Symbol& s, const std::string& name);
  void share(const std::string& text);
  std::optional<Value> named_constant(const Expr& e);
  std::optional<Value> limit(const Expr& e);
  Value field_of(const Value& object, const Field& f);

  // -- resolve.cpp
  Ty type_of(const Type& t); // with its pointers, without its reference
  Ty base_type(const Type& t);
  Ty declared_type(const Declarator& d); // with its extents
  Ty with_extents(Ty t, const Declarator& d, const Value* init);
  Ty template_type(const std::string& name, const TemplateArguments& arguments);
  Ty specialized_type(
      const Symbol& s,
      const TemplateArguments& arguments,
      Scope* where);
  Ty argument_type(const TemplateArgument& a);
  Value argument_constant(const TemplateArgument& a);
  bool is_type_argument(const TemplateArgument& a);
  TypeOrNumber argument_of(const TemplateArgument& a);
  int64_t constant_integer(const Expr& e, const char* name);
  Ty struct_type(
      const Declaration& d,
      const TemplateArguments& arguments,
      Scope* scope);
  void lay_out(Record& r);
  Scope* bind(
      const Declaration& d,
      const TemplateArguments& arguments,
      Scope* scope,
      std::string& key);
  void bind_one(
      Scope& to,
      const TemplateParameter& p,
      const TemplateArgument& a,
      std::string& key);

  // -- constants.cpp
  Value literal(Ty t, const Constant& c);
  Value integer(int64_t v, Scalar s = Scalar::I32);
  Value boolean(bool v);
  Value number(const Expr& e);
  std::optional<Value>
  fold(const std::string& op, const Value& a, const Value& b, Ty result);

  // -- convert.cpp
  Value convert(const Value& v, Ty to, bool is_explicit = false);
  int conversion_cost(Ty from, Ty to, const Value* v = nullptr); // -1: none
  Ty common_type(Ty a, Ty b);
  Ty promoted(Ty t);
  Value rounded(Value v); // to half or bfloat
  Value as_type(const Value& v, Ty to);
  Value construct(Ty to, Values from);
  Value convert_pointer(const Value& v, Ty to, bool is_explicit);

  // -- memory.cpp
  Value load(const Value& v);
  void store(const Value& to, const Value& value);
  Value item(const Value& pointer, const Value& index);
  Value dereference(const Value& pointer);
  Value address_of(const Value& v);
  Value moved(const Value& pointer, const Value& by, bool minus);
  Value decayed(const Value& v);
  Value pinned(Value v); // its index is evaluated once
  Value component(const Value& v, const std::string& index, bool is_constant);
  Base* base_of(Variable* v, const std::string& path, Ty type);

  // -- moving.cpp
  void place_variable(Variable* v, const Declarator& d);
  Base* either_base(Base* a, Base* b);
  void points_into(Base*& slot, Base* b);
  Value compared_with_null(const Value& pointer, const std::string& op);

  // -- memory.cpp
  void make_global(Variable* v);
  std::string need_memory(Ty t); // its load and store functions
  void need_record(const Record& r);
  std::string stored_type(Ty t);
  // A call of load or store at an address, whose arguments end with `rest`.
  std::string memory_call(
      const std::string& function,
      Ty t,
      const std::string& address,
      const std::string& index,
      const std::string& rest = ")");
  std::string index_text(const Value& v, bool address);
  std::string device_address(const Value& v);
  // The address of an access, with a bounds check if checks are requested.
  std::string access_address(const Value& v);
  std::pair<std::string, std::string> accessed(const Value& v);
  Value base_item(Base* b, Ty type, const std::string& index);
  std::string stored_item(Ty t, const std::string& text);
  std::string loaded_item(Ty t, const std::string& text);

  // -- expressions.cpp
  // One level more of the tree until the result's end; an error if too deep.
  Temporarily<int> deeper();
  Value eval(const Expr& e);
  Value eval_inner(const Expr& e);
  Value rvalue(const Expr& e);
  Value condition(const Expr& e);
  void discard(const Expr& e);
  Value member(const Expr& e);
  Value swizzle(const Value& v, const std::string& name);
  Value subscript(const Expr& e);
  Value cast(const Expr& e);
  Value constructed(const Expr& e);
  Value list_value(Ty to, const Expr& list);
  std::vector<const Expr*> items_of(const Expr& e, size_t first = 0);
  Values values_of(const std::vector<const Expr*>& items);
  Value array_list(Ty to, const Expr& list);
  void fill(const Value& to, const Expr& list);
  Value make_struct(Ty to, const std::vector<const Expr*>& items);
  Value initial(Ty to, const Expr& e); // `= e` of a declaration
  Value lambda(const Expr& e);
  Value temporary(const Value& v, const char* wish = "t");
  Ty type_without_effects(const Expr& e);
  bool attempt(const std::function<void()>& body);

  // -- operators.cpp
  Value unary(const Expr& e);
  Value step_by_one(const Expr& e, bool postfix, bool discarded);
  Value binary(const Expr& e);
  Value arithmetic(const std::string& op, const Value& a, const Value& b);
  Value ordered(const std::string& op, const Value& a, const Value& b);
  Value comparison(const std::string& op, const Value& a, const Value& b);
  Value
  pointer_arithmetic(const std::string& op, const Value& a, const Value& b);
  Value shift(const std::string& op, const Value& a, const Value& b);
  Value
  complex_arithmetic(const std::string& op, const Value& a, const Value& b);
  Value short_circuit(const Expr& e);
  Value conditional(const Expr& e);
  Value chosen(const Value& c, Value a, Value b);
  Value assign(const Expr& e);
  std::optional<Value> overloaded(
      const std::string& op,
      const Values& operands);

  // -- calls.cpp
  Value call(const Expr& e);
  [[noreturn]] void no_function(const std::string& name, const Values& given);
  std::optional<Value>
  call_named(const Expr& callee, Values& arguments, const Expr& e);
  std::optional<Value> call_type(const Expr& callee, const Expr& e);
  Value call_member(const Expr& callee, const Expr& e);
  Values arguments_of(const Expr& e);
  std::optional<Value> try_functions(
      Symbol& s,
      Scope* scope,
      const TemplateArguments& explicit_arguments,
      Values& arguments,
      const Value* self);
  std::optional<Candidate> viable(
      const Declaration& d,
      Scope* scope,
      const TemplateArguments& explicit_arguments,
      const Values& arguments);
  bool bind_call(
      const Declaration& d,
      Scope& to,
      const TemplateArguments& explicit_arguments,
      const Values& arguments,
      std::string& key);
  const TemplateParameter*
  bind_defaults(const Declaration& d, Scope& to, std::string& key);
  int parameter_cost(const Parameter& p, Ty type, const Value& given);
  bool rank(Candidate& c, const Values& arguments);
  bool deduce(const Type& t, Ty given, const Declaration& d, Scope& to);
  bool deduce_argument(
      const TemplateArgument& a,
      const TypeOrNumber& given,
      const Declaration& d,
      Scope& to);
  Value call_closure(const Value& closure, Values& arguments);

  // -- functions.cpp
  Value instantiate(const Candidate& c, Values arguments, const Value* self);
  Value call_instance(
      const Instance& f,
      const std::vector<Passed>& how,
      const Values& arguments);
  Passed passing(Ty type, const Type& written, const Value& given);
  std::string passing_key(const Passed& p, const Value& given);
  std::string argument_text(
      const Passed& p,
      const Value& given,
      bool apart,
      std::vector<std::pair<Value, Value>>& back);
  void write_function(
      Instance& f,
      const Candidate& c,
      const std::vector<Passed>& how,
      const Values& arguments,
      const Value* self);
  void write_body(const Candidate& c, Scope& own, bool constructs);
  Variable* declare_parameter(
      Scope& scope,
      const std::string& name,
      const Passed& p,
      const Value& given);
  Value construct_record(Ty to, Values arguments);
  Value default_record(Ty to);

  // -- builtins.cpp, builtins_more.cpp
  std::optional<Value>
  builtin(const std::string& name, const Expr& e, Values& arguments);
  Value exact_function(const char* glsl, const Values& arguments);
  Value float_function(const char* glsl, const Values& arguments);
  Ty overload_type(const Values& arguments, size_t n);
  Value by_components(const char* glsl, Values& arguments, size_t uints);
  std::string narrow_text(
      const std::string& glsl,
      Ty t,
      Ty wide,
      const std::vector<std::string>& x);
  Value
  number_function(const std::string& name, const char* real, Values& arguments);
  Value select(Values& arguments);
  std::optional<Value> with_result(const std::string& name, Values& arguments);
  std::optional<Value> integer_function(
      const std::string& name,
      Values& arguments);
  std::optional<Value>
  mlx_function(const std::string& name, const Expr& e, Values& arguments);

  // -- builtins_threads.cpp
  Value barrier(const std::string& name, Values& arguments);
  std::optional<Value> simd_function(
      const std::string& name,
      Values& arguments);
  std::optional<Value> atomic_function(
      const std::string& name,
      Values& arguments);
  Value atomic_exchange(const std::string& memory, Ty t, Values& arguments);
  Value atomic_float(
      const std::string& operation,
      const std::string& memory,
      const Value& operand);
  Value effect(Ty type, const std::string& text); // as a statement

  // -- statements.cpp
  void statement(const Stmt& s);
  void plain(const Stmt& s);
  void block(const std::vector<StmtPtr>& statements);
  void scoped(const Stmt& s);
  void declaration(const Stmt& s);
  void declare_one(const Stmt& s, const Declarator& d);
  void declare_reference(const Declarator& d);
  void declare_shared(const Declarator& d);
  void declare_constant(const Declarator& d, const Value& v);
  Value& name_of(const Declarator& d, const Value& v);
  void if_statement(const Stmt& s);
  void for_statement(const Stmt& s);
  void while_statement(const Stmt& s);
  void do_statement(const Stmt& s);
  void switch_statement(const Stmt& s);
  void return_statement(const Stmt& s);
  void note_result(const Value& v);
  void local_declaration(const Stmt& s);

  // -- masks.cpp
  void begin_masks();
  bool names_collective(const Expr& e) const;
  bool is_collective(const Stmt& s);
  bool is_collective(const Expr& e);
  bool needs_mask(const Stmt& s);
  bool escapes(const Stmt& s, bool in_loop, bool in_switch);
  void find_collectives(const Unit& unit);
  void masked(const Stmt& s);
  void masked_if(const Stmt& s);
  void masked_loop(const Stmt& s);
  bool masked_uniform_loop(const Stmt& s);
  void masked_switch(const Stmt& s);
  void masked_leave(const Stmt& s);
  void masked_return(const Stmt& s);
  void with_mask(Mask& m, const std::function<void()>& body);
  std::string new_mask(const std::string& value);
  Mask& part_mask(const std::string& value); // of some invocations
  void after_leaving(Mask& outer, bool leaves);
  std::string mask_text(); // of the active invocations, as an argument
  bool is_uniform(const Expr& e);
  void leave_lanes(const std::string& lanes);
  void update_guard();
  Value masked_choice(const Expr& e, const Value& condition);

  // -- output.cpp
  void emit(const std::string& text);
  void emit_everywhere(const std::string& text);
  void open(const std::string& text);
  void open_for(Variable* v, const std::string& rest);
  void open_stepping(const std::function<void()>& step);
  void open_else();
  void break_unless(const Value& condition);
  void close(const std::string& text = "}");
  Variable* variable(const std::string& wish, Ty type, Space space);
  std::string mark(const Variable& v) const;
  Value of_variable(Variable* v);
  void declare_variable(Variable* v, const std::string& init);
  void declare_everywhere(Variable* v, const std::string& init);
  std::vector<Line> captured(const std::function<void()>& body);
  std::vector<Line> captured_inside(const std::function<void()>& body);
  void wrote(const Value& to);
  void check_writable(const Value& to) const;
  void append(std::vector<Line>& lines);
  std::string free_name(const std::string& wish);
  std::string print();
  void print_lines(std::string& out, const std::vector<Line>& lines) const;
  std::string declared_text(const Variable& v, const std::string& rest) const;
  void choose_names();
  std::string with_names(const std::string& text) const;
  template <typename... Parts>
  [[noreturn]] void fail(std::string_view form, const Parts&... parts) const {
    fail_at(here_, form, parts...);
  }

  const Source& source_;
  const Target& target_;
  const Together& together_;
  Unit unit_;
  Types types_;
  std::deque<Scope> scopes_;
  std::deque<Record> records_;
  std::deque<Closure> closures_;
  std::deque<Variable> variables_;
  std::deque<Base> bases_;
  std::deque<Mask> masks_;
  std::map<std::string, Instance> instances_;
  std::map<std::string, Ty> structs_;
  std::set<std::string> collective_names_;
  std::set<std::string> global_names_;
  Scope global_;
  Scope* scope_ = &global_;
  Writing* writing_ = nullptr;
  std::vector<Line> prologue_; // of main
  std::vector<Line> globals_; // constants
  std::vector<std::string> records_text_, memory_text_;
  std::set<std::string> memory_done_;
  std::deque<Written> written_;
  int functions_ = 0;
  int depth_ = 0, nested_ = 0;
  Place here_; // of the statement or expression at hand, for messages
  Place last_; // of the expression evaluated last, for reports of accesses
  size_t explicit_ = 0; // template arguments given to the call at hand
  bool discarding_ = false; // the value of the call to come
  bool uses_simd_ = false;
  bool independent_ = true; // Translation::independent, apart from uses_simd_
  uint32_t shared_bytes_ = 0;
};

} // namespace msl
