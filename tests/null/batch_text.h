// Batches of real models, as MLX_VK_DEBUG=select writes them: their records as
// a List, and which ran as one by which rule.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "null/rewrite_program.h"
#include "runtime/rewrite_log.h"

namespace rewriting {

// "name=value" as a member of a descriptor.
struct Reader {
  std::map<std::string, std::string>& values;

  std::string take(const char* name) const {
    auto found = values.find(name);
    if (found == values.end()) {
      throw std::runtime_error(std::string("no ") + name);
    }
    auto value = found->second;
    values.erase(found);
    return value;
  }
  void operator()(const char* name, Type& type) const {
    type = type_named(take(name)).value();
  }
  template <std::integral I>
  void operator()(const char* name, I& value) const {
    value = static_cast<I>(std::stoll(take(name)));
  }
  void operator()(const char* name, Heads& h) const {
    std::istringstream in(take(name));
    char bar;
    in >> h.D >> bar >> h.in_offset >> bar >> h.out_offset;
    for (auto& a : h.axes) {
      in >> bar >> a.extent >> bar >> a.in >> bar >> a.out;
    }
  }
};

class RecordedBatch : public List {
 public:
  // Of one batch: its header is read already.
  RecordedBatch(std::istream& in, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      std::string line, part[4];
      std::getline(in, line);
      std::istringstream parts(line);
      for (auto& p : part) {
        std::getline(parts, p, '|');
      }
      std::string rest;
      std::getline(parts, rest);
      add_record(part[0], part[1], part[2]);
      ends.push_back(part[3] + "|" + rest);
    }
  }

  std::vector<std::string> ends; // of the lines: what ran, and why

 private:
  template <typename R>
  static R usual(bool fragments) {
    if constexpr (std::is_same_v<R, ProductRecord>) {
      return fragments ? R{usual_fragments()} : R{usual_matvec()};
    } else if constexpr (std::is_same_v<R, GatheredRecord>) {
      return {usual_matvec()};
    } else {
      return {};
    }
  }
  // The record R, or the first of a later kind, of this name.
  template <size_t I = 1>
  static Descriptor descriptor(
      const std::string& kind,
      std::map<std::string, std::string> all) {
    if constexpr (I < std::variant_size_v<Descriptor>) {
      using R = std::variant_alternative_t<I, Descriptor>;
      if (kind == R::name) {
        R record = usual<R>(all["form"] == "1");
        if (!std::is_same_v<R, ProductRecord>) {
          all.erase("form");
        }
        record.fields(Reader{all});
        if (!all.empty()) {
          throw std::runtime_error(kind + " has no " + all.begin()->first);
        }
        return record;
      }
      return descriptor<I + 1>(kind, std::move(all));
    } else {
      return kind == "other" ? Descriptor{}
                             : throw std::runtime_error("unknown kind " + kind);
    }
  }

  void add_record(
      const std::string& text,
      const std::string& operands,
      const std::string& words) {
    std::istringstream in(text);
    std::string number, kind, word;
    in >> number >> kind;
    std::map<std::string, std::string> values;
    while (in >> word) {
      size_t equal = word.find('=');
      values[word.substr(0, equal)] = word.substr(equal + 1);
    }
    Record& r = records.emplace_back();
    r.descriptor = descriptor(kind, std::move(values));
    r.first_access = uint32_t(accesses.size());
    std::vector<uint32_t> block;
    in = std::istringstream(operands);
    while (in >> word) {
      char access = 0;
      unsigned long long buffer = 0, begin = 0, end = 0;
      long long offset = 0;
      int read = std::sscanf(
          word.c_str(),
          "%c%llu+%lld[%llu,%llu)",
          &access,
          &buffer,
          &offset,
          &begin,
          &end);
      if (read != 5) {
        throw std::runtime_error("not an operand: " + word);
      }
      uint64_t base = uint64_t(buffer) << 36, address = base + offset;
      accesses.push_back({base, begin, end, access == 'w'});
      block.push_back(uint32_t(address));
      block.push_back(uint32_t(address >> 32));
    }
    r.access_count = uint32_t(accesses.size()) - r.first_access;
    in = std::istringstream(words);
    while (in >> word) {
      if (word.ends_with("*0")) {
        block.resize(block.size() + std::stoul(word));
      } else {
        block.push_back(uint32_t(std::stoul(word, nullptr, 16)));
      }
    }
    r.args_size = uint32_t(4 * block.size());
    r.args_in_memory = true;
    r.args_offset = uint32_t(arguments.size());
    arguments.resize((arguments.size() + r.args_size + 15) / 16 * 16);
    std::memcpy(arguments.data() + r.args_offset, block.data(), r.args_size);
  }
};

} // namespace rewriting
