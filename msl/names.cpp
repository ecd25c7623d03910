#include "msl/names.h"

#include <algorithm>
#include <unordered_map>

#include "msl/tokens.h"

namespace msl {

namespace {

using Names = std::unordered_map<std::string_view, Meaning>;

// Lists of words, separated by spaces.
constexpr std::string_view kScalars =
    "void bool char uchar short ushort int uint long ulong half float double "
    "bfloat size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t "
    "uint32_t uint64_t intptr_t uintptr_t float16_t bfloat16_t complex64_t "
    "float32_t auto atomic_int atomic_uint atomic_bool atomic_float "
    "atomic_ulong memory_order simdgroup_barrier_t true_type false_type "
    "nullptr_t fp8_e4m3 _Bool __bf16";

constexpr std::string_view kTypeTemplates =
    "vec packed_vec array matrix atomic Limits numeric_limits is_same "
    "is_integral is_floating_point is_signed is_unsigned conditional "
    "conditional_t enable_if enable_if_t integral_constant bool_constant "
    "remove_cv_t remove_cv remove_reference_t remove_reference make_unsigned_t "
    "make_signed_t make_unsigned make_signed ConditionalType WorkPerThread "
    "LoopedElemToLoc complex_t decay_t pair simdgroup_matrix texture1d "
    "texture2d texture3d texture2d_array texture_buffer texturecube depth2d "
    "_atomic";

constexpr std::string_view kValueTemplates =
    "static_cast reinterpret_cast const_cast as_type is_same_v is_integral_v "
    "is_floating_point_v is_signed_v is_unsigned_v elem_to_loc elem_to_loc_1 "
    "elem_to_loc_2 elem_to_loc_3 elem_to_loc_2_nd elem_to_loc_3_nd "
    "make_filled_simdgroup_matrix";

constexpr std::string_view kKeywords =
    "if else for while do switch case default break continue return struct "
    "class enum using typedef template typename operator static sizeof "
    "static_assert this true false decltype namespace private public protected "
    "union";

Names make_names() {
  Names out;
  for (auto name : words_of(kScalars)) {
    out.emplace(name, Meaning::Type);
  }
  for (auto name : words_of(kTypeTemplates)) {
    out.emplace(name, Meaning::BuiltInTypeTemplate);
  }
  for (auto name : words_of(kValueTemplates)) {
    out.emplace(name, Meaning::ValueTemplate);
  }
  static Arena texts;
  auto add = [&](std::string name) {
    out.emplace(texts.emplace_back(std::move(name)), Meaning::Type);
  };
  for (std::string_view word :
       words_of("bool char uchar short ushort int uint long ulong half float "
                "bfloat")) {
    std::string scalar(word);
    for (std::string n : {"2", "3", "4"}) {
      add(scalar + n);
      add("packed_" + scalar + n);
      for (std::string m : {"2", "3", "4"}) {
        add(scalar + n + "x" + m);
      }
    }
    add("simdgroup_" + scalar + "8x8");
  }
  return out;
}

} // namespace

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

Meaning built_in_meaning(std::string_view name) {
  static const Names names = make_names();
  auto found = names.find(name);
  return found == names.end() ? Meaning::None : found->second;
}

std::string refused_word(std::string_view name) {
  static const std::unordered_map<std::string_view, std::string_view> words{
      {"goto", "write a loop with break and continue"},
      {"try", "Metal has no exceptions: write a result instead"},
      {"catch", "Metal has no exceptions: write a result instead"},
      {"throw", "Metal has no exceptions: write a result instead"},
      {"new", "use an array of a fixed size"},
      {"delete", "use an array of a fixed size"},
      {"virtual", "use a template parameter for what differs"},
      {"dynamic_cast", "use static_cast"},
      {"typeid", "use is_same_v"},
      {"union", "use as_type to see a value as another type"},
      {"asm", "there is no assembly of all GPUs"},
      {"__asm__", "there is no assembly of all GPUs"},
      {"friend", "make the function a method, or the fields public"},
      {"thread_local", "variables of a body are the thread's own already"},
      {"co_await", "write a loop"},
      {"co_yield", "write a loop"},
      {"co_return", "write a loop"},
      {"concept", "use static_assert"},
      {"requires", "use static_assert"}};
  auto found = words.find(name);
  return found == words.end() ? ""
                              : "`" + std::string(name) +
          "` is not supported; " + std::string(found->second) + ".";
}

bool has_word(std::string_view list, std::string_view word) {
  for (size_t at = list.find(word); at != list.npos;
       at = list.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') &&
        (end == list.size() || list[end] == ' ')) {
      return true;
    }
  }
  return false;
}

bool is_keyword(std::string_view name) {
  return has_word(kKeywords, name);
}

bool is_space(std::string_view name) {
  return name == "device" || name == "constant" || name == "threadgroup" ||
      name == "thread" || name == "threadgroup_imageblock" ||
      name == "ray_data" || name == "object_data";
}

bool is_qualifier(std::string_view name) {
  return is_space(name) || name == "const" || name == "constexpr" ||
      name == "volatile" || name == "constinit";
}

} // namespace msl
