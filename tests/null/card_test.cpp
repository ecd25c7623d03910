// Cards without room: files that reach the device through a few blocks of host
// memory, and arrays that it reads in the host's memory.
#include <atomic>
#include <thread>

#include "null/memory_rig.h"
#include "runtime/staging.h"

using namespace mlx::core::vulkan;

namespace {

template <typename F>
std::string message(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

fake::Settings card_of(uint64_t device_mib, uint64_t host_mib) {
  auto s = card();
  s.heaps[0].size = device_mib * mib;
  s.heaps[1].size = host_mib * mib;
  return s;
}

// Reads `array`, of which each value is `value`, from a "file" on a thread.
void load(
    Rig& rig,
    Encoder& enc,
    const Rig::Array& array,
    uint32_t value,
    std::vector<std::thread>& readers,
    std::string error = {}) {
  for (uint64_t begin = 0; begin < array->size; begin += Staging::block_size) {
    uint64_t size = std::min(Staging::block_size, array->size - begin);
    auto block = rig.device->staging().take();
    auto full = std::make_shared<EventState>();
    readers.emplace_back([=] {
      std::fill_n(static_cast<uint32_t*>(block->mapped), size / 4, value);
      full->signal_host(1, error);
    });
    enc.fill(*array, begin, size, std::move(block), {full, 1, nullptr});
    enc.keep(array);
    enc.close_and_go_on({});
  }
}

// An array that a finished batch has written: mix() of `salt`.
Rig::Array written(
    Rig& rig,
    Encoder& enc,
    uint64_t bytes,
    uint32_t salt,
    Placement placement = Placement::Device) {
  auto x = rig.array(bytes, placement);
  rig.mix(enc, nullptr, nullptr, x, salt);
  enc.close()->wait_retired();
  return x;
}

// Batches enough that arrays which no one of them uses are idle.
void pass_time(Rig& rig, Encoder& enc, const Rig::Array& x) {
  auto z = rig.array(n * 4);
  for (int i = 0; i < 300; ++i) {
    rig.mix(enc, x, nullptr, z, 1);
    enc.close()->wait_retired();
  }
}

constexpr uint64_t moved_bytes = 4 * mib;

// Arrays that moved to the host's memory. The next batch may bring them back.
std::vector<Rig::Array> moved_out(Rig& rig, Encoder& enc, uint32_t count) {
  std::vector<Rig::Array> old, made;
  for (uint32_t i = 0; i < count; ++i) {
    old.push_back(written(rig, enc, moved_bytes, i));
  }
  pass_time(rig, enc, nullptr);
  while (rig.memory().in_place_bytes < count * moved_bytes) {
    made.push_back(rig.array(moved_bytes));
  }
  made.clear();
  pass_time(rig, enc, nullptr);
  return old;
}

void join(std::vector<std::thread>& threads) {
  for (auto& t : threads) {
    t.join();
  }
  threads.clear();
}

} // namespace

TEST_CASE("card: a file of any size takes a few blocks of the host's memory") {
  for (auto settings : {card_of(256, 256), apu(256 * mib, 256 * mib)}) {
    settings.work_us = 300;
    Rig rig(settings);
    Encoder enc(*rig.device, 0);
    std::vector<std::thread> readers;
    std::vector<Rig::Array> arrays;
    uint32_t host = rig.memory().types().host[0];
    auto heap = rig.device->caps().memory.memoryTypes[host].heapIndex;
    uint64_t before = fake::statistics().heap_memory[heap], most = 0;
    for (uint32_t i = 0; i < 24; ++i) { // 204 MiB
      arrays.push_back(rig.array(i % 3 ? 1 * mib + 4 : 23 * mib));
      load(rig, enc, arrays.back(), i, readers);
      most = std::max(most, fake::statistics().heap_memory[heap]);
    }
    auto last = enc.close();
    join(readers);
    last->wait_retired();
    CHECK(most - before <= Staging::most * Staging::block_size + 2 * mib);
    CHECK(most - before > Staging::block_size);
    CHECK(rig.memory().downloaded == 0);
    // One block stays.
    CHECK(
        fake::statistics().heap_memory[heap] - before <=
        Staging::block_size + 2 * mib);
    for (uint32_t i : {0, 1, 22, 23}) {
      auto* x = rig.values(arrays[i]);
      CHECK((x[0] == i && x[arrays[i]->size / 4 - 1] == i));
    }
  }
}

TEST_CASE("card: an error of a file fails what reads the array") {
  Rig rig(card());
  Encoder enc(*rig.device, 0);
  std::vector<std::thread> readers;
  auto x = rig.array(20 * mib), z = rig.array(n * 4);
  enc.begin_eval(1);
  load(rig, enc, x, 1, readers, "the file was cut");
  rig.mix(enc, nullptr, nullptr, z, 1);
  auto last = enc.close();
  join(readers);
  last->wait();
  CHECK(last->error().find("the file was cut") != std::string::npos);
  last->wait_retired();
  // The stream lives, and blocks have returned.
  enc.begin_eval(2);
  load(rig, enc, x, 2, readers);
  last = enc.close();
  join(readers);
  last->wait_retired();
  CHECK(rig.values(x)[5] == 2);
}

TEST_CASE("card: what has no room is read in the host's memory") {
  for (bool budget : {false, true}) {
    for (bool host_made : {false, true}) {
      auto s = card_of(32, 256);
      if (budget) {
        s.budgets = {24 * mib, 256 * mib};
      }
      Rig rig(s);
      std::vector<Rig::Array> all;
      auto& memory = rig.memory();
      Encoder enc(*rig.device, 0);
      auto z = rig.array(n * 4);
      constexpr uint32_t items = 1 << 20;
      uint32_t salt = 0;
      while (memory.in_place_bytes < 12 * mib && salt < 30) {
        ++salt;
        std::vector<std::thread> readers;
        if (host_made) {
          all.push_back(rig.numbers(items, salt));
        } else {
          all.push_back(rig.array(items * 4));
          load(rig, enc, all.back(), salt, readers);
        }
        rig.mix(enc, all.back(), nullptr, z, 7);
        auto done = enc.close();
        join(readers);
        done->wait();
        CHECK(rig.values(z)[n - 1] == salt * 31 + 7);
      }
      CHECK(memory.in_place_bytes == 3 * items * 4);
      // Weights that are older move instead of new ones.
      CHECK(memory.in_place(*all.back()) == host_made);
      CHECK(memory.in_place(*all.front()) != host_made);
      // Within the budget, and all of it.
      uint64_t used = fake::statistics().heap_memory[0];
      CHECK(used <= (budget ? 24 : 32) * mib);
      CHECK(used >= (budget ? 16 : 24) * mib);
      // The host writes, the device reads and writes, the host reads.
      auto x = all.back();
      std::fill_n(rig.values(x), items, 5);
      rig.mix(enc, x, nullptr, z, 1);
      rig.mix(enc, x, nullptr, x, 2);
      enc.close()->wait();
      CHECK(rig.values(z)[0] == 5 * 31 + 1);
      CHECK(rig.values(x)[items - 1] == 5 * 31 + 2);
      all.clear();
      x.reset();
      enc.close()->wait_retired();
      CHECK(memory.in_place_bytes == 0);
    }
  }
}

TEST_CASE("card: arrays that no recent batch used move to the host's memory") {
  Rig rig(card_of(128, 512));
  auto& memory = rig.memory();
  Encoder enc(*rig.device, 0);
  constexpr uint64_t bytes = 4 * mib;
  auto z = rig.array(n * 4);
  auto make = [&](uint32_t salt) { return written(rig, enc, bytes, salt); };
  std::vector<std::thread> readers;
  auto weight = rig.array(bytes);
  load(rig, enc, weight, 9, readers);
  enc.close()->wait_retired();
  join(readers);
  std::vector<Rig::Array> old, recent;
  for (uint32_t i = 0; i < 12; ++i) {
    old.push_back(make(i));
  }
  const uint32_t* seen = rig.values(old[3]); // what the host has seen stays
  pass_time(rig, enc, weight);
  old[5] = nullptr;
  rig.mix(enc, old[0], nullptr, z, 1); // used, and by an open batch
  for (uint32_t i = 0; i < 20; ++i) {
    auto x = rig.array(bytes);
    recent.push_back(x);
    CHECK_FALSE(memory.in_place(*x));
  }
  CHECK_FALSE(memory.in_place(*weight));
  CHECK_FALSE(memory.in_place(*old[0]));
  CHECK_FALSE(memory.in_place(*old[3]));
  CHECK(memory.in_place(*old[1]));
  CHECK(seen[0] == 3);
  CHECK(memory.in_place_bytes.load() == 9 * bytes);
  enc.close()->wait_retired();
  // Nothing is idle any more: new arrays are made in the host's memory.
  while (!memory.in_place(*recent.back())) {
    recent.push_back(make(50));
  }
  for (uint32_t i : {0, 1, 2, 3, 4, 11}) { // read, then written, in place
    rig.mix(enc, old[i], nullptr, z, 7);
    enc.close()->wait_retired();
    CHECK(rig.values(z)[n - 1] == i * 31 + 7);
    rig.mix(enc, old[i], nullptr, old[i], 2);
    enc.close()->wait_retired();
    CHECK(rig.values(old[i])[n - 1] == i * 31 + 2);
  }
}

TEST_CASE("card: idle arrays may take half of the host's memory") {
  Rig rig(card_of(64, 1024));
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4);
  std::vector<Rig::Array> kept; // as prompt caches that a server remembers
  for (uint32_t i = 0; i < 110; ++i) {
    kept.push_back(written(rig, enc, 4 * mib, i));
  }
  CHECK(rig.memory().in_place_bytes.load() > 320 * mib);
  for (uint32_t i = 0; i < 110; ++i) {
    rig.mix(enc, kept[i], nullptr, z, 7);
    enc.close()->wait_retired();
    CHECK(rig.values(z)[n - 1] == i * 31 + 7);
  }
}

TEST_CASE("card: weights move last, and return while there is room") {
  Rig rig(card_of(128, 512));
  auto& memory = rig.memory();
  Encoder enc(*rig.device, 0);
  constexpr uint64_t bytes = 4 * mib;
  constexpr uint32_t last = bytes / 4 - 1;
  auto z = rig.array(n * 4);
  auto host = [&] {
    uint32_t type = memory.types().in_place[0];
    auto heap = rig.device->caps().memory.memoryTypes[type].heapIndex;
    return fake::statistics().heap_memory[heap];
  };
  std::vector<std::thread> readers;
  std::vector<Rig::Array> weights, made;
  for (uint32_t i = 0; i < 8; ++i) {
    weights.push_back(rig.array(bytes));
    load(rig, enc, weights.back(), i, readers);
  }
  enc.close()->wait_retired();
  join(readers);
  auto read_all = [&] {
    for (uint32_t i = 0; i < 8; ++i) {
      rig.mix(enc, weights[i], nullptr, z, 7);
      enc.close()->wait_retired();
      CHECK(rig.values(z)[n - 1] == i * 31 + 7);
    }
  };
  auto rest = [&] {
    for (int i = 0; i < 260; ++i) {
      rig.mix(enc, nullptr, nullptr, z, 1);
      enc.close()->wait_retired();
    }
  };
  auto in_place = [&] { return memory.in_place_bytes.load() / bytes; };
  uint64_t first = 0;
  for (int turn = 0; turn < 4; ++turn) {
    while (in_place() < 5) {
      made.push_back(rig.array(bytes));
      rig.mix(enc, nullptr, nullptr, made.back(), 1);
      enc.close()->wait_retired();
    }
    for (auto& x : made) {
      CHECK_FALSE(memory.in_place(*x));
    }
    read_all();
    CHECK(in_place() == 5);
    made.clear();
    read_all();
    CHECK(in_place() == 5); // the card was full a moment ago
    rest();
    std::optional<Encoder> other;
    if (turn == 3) {
      other.emplace(*rig.device, 1); // its batch holds old addresses
      rig.mix(*other, weights[1], nullptr, z, 7);
      uint64_t before = in_place();
      read_all();
      CHECK(in_place() == before);
      other.reset();
    }
    read_all();
    CHECK(in_place() == 0);
    // Memory of the host that moves took is free again.
    first = turn == 0 ? host() : first;
    CHECK(host() <= first);
  }
  rig.mix(enc, weights[2], nullptr, weights[2], 2);
  enc.close()->wait_retired();
  CHECK(rig.values(weights[2])[last] == 2 * 31 + 2);
}

TEST_CASE("card: what the host reads while it returns to the card") {
  Rig rig(card_of(128, 512));
  auto& memory = rig.memory();
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4);
  auto old = moved_out(rig, enc, 4);
  constexpr uint32_t last = moved_bytes / 4 - 1;
  // An open batch uploads them: the host reads one at once, another is written
  // in the same batch and a third in a later one, then read.
  for (auto& x : old) {
    rig.mix(enc, x, nullptr, z, 1);
    CHECK_FALSE(memory.in_place(*x));
  }
  CHECK(rig.values(old[0])[last] == 0);
  rig.mix(enc, old[1], nullptr, old[1], 5);
  enc.close()->wait_retired();
  rig.mix(enc, old[2], nullptr, old[2], 6);
  rig.mix(enc, old[0], old[3], old[3], 0);
  enc.close()->wait_retired();
  CHECK(rig.values(old[1])[last] == 31 + 5);
  CHECK(rig.values(old[2])[last] == 2 * 31 + 6);
  for (uint32_t i = 0; i < 2; ++i) {
    rig.values(old[i])[0] = 9; // and the host's writes count
    rig.mix(enc, old[i], nullptr, z, 1);
    enc.close()->wait_retired();
    CHECK(rig.values(z)[0] == 9 * 31 + 1);
  }
}

TEST_CASE("card: batches that are not on the queue, and arrays that return") {
  Rig rig(card_of(128, 512));
  auto& memory = rig.memory();
  Encoder enc(*rig.device, 0), other(*rig.device, 1);
  auto z = rig.array(n * 4);
  auto old = moved_out(rig, enc, 2);
  // Another stream's may read the memory after this batch.
  rig.mix(other, nullptr, nullptr, z, 1);
  rig.mix(enc, old[0], nullptr, z, 1);
  CHECK(memory.in_place(*old[0]));
  other.close()->wait_retired();
  enc.close()->wait_retired();
  // This stream's are submitted first.
  rig.mix(enc, old[0], nullptr, z, 1);
  CHECK_FALSE(memory.in_place(*old[0]));
  enc.close()->wait_retired();
  auto event = std::make_shared<EventState>();
  enc.wait({event, 1, nullptr});
  rig.mix(enc, nullptr, nullptr, z, 2);
  enc.close_and_go_on({});
  rig.mix(enc, old[1], nullptr, z, 3);
  CHECK_FALSE(memory.in_place(*old[1]));
  event->signal_host(1, {});
  enc.close()->wait_retired();
  CHECK(rig.values(z)[0] == 31 + 3);
}

TEST_CASE("card: arrays move while another thread uses and frees them") {
  Rig rig(card_of(64, 512));
  auto& memory = rig.memory();
  std::atomic<bool> done{false};
  std::thread other([&] {
    Encoder enc(*rig.device, 1);
    while (!done) {
      std::vector<Rig::Array> all;
      for (int i = 0; i < 20; ++i) { // idle arrays move, then new ones do
        all.push_back(rig.array(4 * mib));
      }
      rig.mix(enc, nullptr, nullptr, all[0], 1);
      enc.close()->wait_retired();
    }
  });
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4);
  std::vector<Rig::Array> mine(6);
  uint32_t moved = 0;
  for (uint32_t turn = 0; turn < 36; ++turn) {
    auto& x = mine[turn % 6];
    if (x) {
      moved += memory.in_place(*x);
      rig.mix(enc, x, nullptr, z, 7);
      rig.mix(enc, x, nullptr, x, 2);
      enc.close()->wait_retired();
      CHECK(rig.values(z)[n - 1] == (turn - 6) * 31 + 7);
      CHECK(rig.values(x)[mib - 1] == (turn - 6) * 31 + 2);
    }
    x = rig.array(4 * mib);
    rig.mix(enc, nullptr, nullptr, x, turn);
    for (int i = 0; i < 60; ++i) {
      rig.mix(enc, nullptr, nullptr, z, 1);
      enc.close()->wait_retired();
    }
  }
  done = true;
  other.join();
  CHECK(moved > 0);
}

TEST_CASE("card: memory to spare moves nothing, and does not move itself") {
  Rig rig(card_of(128, 512));
  auto& memory = rig.memory();
  Encoder enc(*rig.device, 0);
  constexpr uint64_t bytes = 4 * mib;
  std::vector<Rig::Array> idle, spare, made;
  for (uint32_t i = 0; i < 8; ++i) {
    idle.push_back(written(rig, enc, bytes, i));
  }
  auto text = message([&] {
    while (true) {
      spare.push_back(written(rig, enc, bytes, 1, Placement::Spare));
    }
  });
  CHECK(text.find("128 MiB") != std::string::npos);
  CHECK(spare.size() > 8);
  CHECK(memory.in_place_bytes == 0);
  pass_time(rig, enc, nullptr);
  CHECK_FALSE(message([&] { rig.array(bytes, Placement::Spare); }).empty());
  for (int i = 0; i < 16; ++i) {
    made.push_back(
        rig.array(bytes)); // idle arrays make room, then the host does
  }
  CHECK(memory.in_place_bytes >= 8 * bytes);
  for (auto& a : spare) {
    CHECK_FALSE(memory.in_place(*a));
  }
}

TEST_CASE("card: what fits nowhere says so, each time") {
  Rig rig(card_of(32, 64));
  std::vector<Rig::Array> all;
  auto fill = [&] {
    while (true) {
      all.push_back(rig.array(4 * mib));
    }
  };
  for (int i = 0; i < 20; ++i) {
    auto text = message(fill);
    CHECK(text.find("The host's heap of 64 MiB has") != std::string::npos);
    all.erase(all.begin());
  }
  CHECK(all.size() > 12);
  all.clear();
  auto x = rig.numbers(n, 3), z = rig.array(n * 4);
  Encoder enc(*rig.device, 0);
  rig.mix(enc, x, nullptr, z, 1);
  enc.close()->wait();
  CHECK(rig.values(z)[0] == 94);
}

TEST_CASE("card: reads over the bus count as slow in the estimates") {
  Rig rig(card_of(32, 256));
  Encoder enc(*rig.device, 0);
  auto z = rig.array(n * 4);
  float seconds[2];
  for (auto place : {Placement::Device, Placement::InPlace}) {
    auto x = rig.array(4 * mib, place);
    rig.mix(enc, x, nullptr, z, 7);
    bool bus = place == Placement::InPlace;
    CHECK(rig.memory().in_place(*x) == bus);
    seconds[bus] = enc.open_batch()->records.back().seconds;
    enc.close()->wait_retired();
  }
  double bytes = rig.device->work_limit().rates.copy_bytes;
  CHECK(seconds[1] - seconds[0] == doctest::Approx(4.0 * mib / bytes));
}
