#include "runtime/rewrite_log.h"

#include <cstring>
#include <iterator>
#include <sstream>
#include <unordered_map>

#include "pipeline/pipeline.h"

namespace mlx::core::vulkan {

RewriteCounters& rewrite_counters() {
  static auto* counters = new RewriteCounters; // leaked: read at exit
  return *counters;
}

const char* name_of(Miss miss) {
  constexpr const char* names[] = {
      "order", "overlap", "form", "registers", "kernel"};
  static_assert(std::size(names) == size_t(Miss::Count));
  return names[size_t(miss)];
}

void count_joined(Rule rule, uint32_t records) {
  rewrite_counters().rules[size_t(rule)].fired.fetch_add(
      records, std::memory_order_relaxed);
}

void count_missed(Rule rule, Miss why) {
  rewrite_counters().rules[size_t(rule)].missed[size_t(why)].fetch_add(
      1, std::memory_order_relaxed);
}

namespace {

struct Writer {
  std::ostream& out;

  void operator()(const char* name, const Type& type) const {
    out << ' ' << name << '=' << name_of(type);
  }
  template <std::integral I>
  void operator()(const char* name, const I& value) const {
    out << ' ' << name << '=' << int64_t(value);
  }
  void operator()(const char* name, const Heads& h) const {
    out << ' ' << name << '=' << h.D << '/' << h.in_offset << '/'
        << h.out_offset;
    for (auto& a : h.axes) {
      out << '/' << a.extent << '/' << a.in << '/' << a.out;
    }
  }
};

void write_descriptor(Descriptor descriptor, std::ostream& out) {
  std::visit(
      [&]<typename R>(R& r) {
        if constexpr (std::is_same_v<R, std::monostate>) {
          out << "other";
        } else {
          out << R::name;
          r.fields(Writer{out});
        }
      },
      descriptor);
}

// Words of an argument block in hexadecimal, zeros as their count: "1f 3*0".
void write_words(const std::byte* bytes, size_t size, std::ostream& out) {
  size_t zeros = 0;
  auto end_zeros = [&] {
    if (zeros) {
      out << ' ' << std::dec << zeros << "*0" << std::hex;
      zeros = 0;
    }
  };
  out << std::hex;
  for (size_t at = 0; at + 4 <= size; at += 4) {
    uint32_t word;
    std::memcpy(&word, bytes + at, 4);
    if (word) {
      end_zeros();
      out << ' ' << word;
    } else {
      ++zeros;
    }
  }
  end_zeros();
  out << std::dec;
}

} // namespace

SelectLog::SelectLog(
    const std::vector<Record>& records,
    const std::vector<Access>& accesses,
    const std::vector<std::byte>& arguments) {
  std::unordered_map<uint64_t, size_t> buffers;
  for (auto& r : records) {
    std::ostringstream out;
    auto* args = r.args_in_memory ? arguments.data() + r.args_offset : r.pushed;
    bool known = r.descriptor.index() != 0;
    write_descriptor(r.descriptor, out);
    out << " |";
    for (uint32_t i = 0; i < r.access_count; ++i) {
      auto& a = accesses[r.first_access + i];
      auto buffer = buffers.try_emplace(a.base, buffers.size() + 1).first;
      uint64_t address = a.base;
      if (known && 8 * i + 8 <= r.args_size) {
        std::memcpy(&address, args + 8 * i, 8);
      }
      out << (a.write ? " w" : " r") << buffer->second << '+'
          << int64_t(address - a.base) << '[' << a.begin << ',' << a.end << ')';
    }
    out << " |";
    size_t begin = 8 * size_t(r.access_count);
    if (known && begin < r.args_size) {
      write_words(args + begin, r.args_size - begin, out);
    }
    nodes_.push_back({out.str(), static_cast<uint32_t>(nodes_.size()), ""});
  }
}

void SelectLog::joined(uint32_t record, Rule rule) {
  (nodes_[record].why += ' ') += name_of(rule);
}

void SelectLog::missed(uint32_t record, Rule rule, Miss why) {
  nodes_[record].why +=
      std::string(" not ") + name_of(rule) + ": " + name_of(why) + '.';
}

void SelectLog::run(std::span<const uint32_t> members, uint32_t place) {
  for (uint32_t member : members) {
    nodes_[member].place = place;
  }
}

std::string SelectLog::text(const std::vector<Record>& records) const {
  std::vector<const Record*> run(nodes_.size());
  auto left = records.begin();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    run[i] = nodes_[i].place == i ? &*left++ : nullptr;
  }
  std::ostringstream out;
  out << "[mlx-vulkan] select: " << nodes_.size() << " records, "
      << records.size() << " run\n";
  for (size_t i = 0; i < nodes_.size(); ++i) {
    auto& n = nodes_[i];
    const Kernel* kernel = run[n.place]->kernel;
    out << i << ' ' << n.descriptor << " | " << n.place << ' '
        << (kernel ? kernel->name : "copy") << " |" << n.why << '\n';
  }
  return out.str();
}

} // namespace mlx::core::vulkan
