// run-ptx TEXT.ptx LAUNCH SEEDS [by-warp | speed | FOLDER]: launches an entry under each seed, races looked for, and
// with by-warp wgmma ending by warp, and prints a hash of what it has left in its buffers, or what was found; with
// speed, what ran in a second of this processor, without a look for races and with it. LAUNCH has a line each:
//   entry NAME | grid X Y Z | block X Y Z | cluster X Y Z | shared BYTES | limit INSTRUCTIONS | give BUFFER |
//   map BUFFER SWIZZLE RANK EXTENTS.. BOX.. | buffer NAME TYPE COUNT none|random|file|VALUES.. | bytes HEX | u32 VALUE
//   | u64 VALUE | f32 VALUE
// What is given and mapped, and values, are the parameters, in this order. Buffers of `file` are read from
// FOLDER/NAME.bin, and what is left in all of them under the last seed is written to FOLDER/NAME.out.
#include "k2c/Ptx/Machine.h"
#include "k2c/Ptx/TensorMap.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <list>
#include <random>
#include <sstream>

using namespace k2c;
using namespace k2c::ptx;

namespace {

struct Buffer {
  std::vector<uint64_t> words; ///< aligned as tensors are
  Type type = Type::F32;
  uint64_t bytes = 0;
  bool isWritten = true;
  std::byte *data() { return reinterpret_cast<std::byte *>(words.data()); }
};

struct Setup {
  std::string entry;
  Launch launch;
  std::map<std::string, Buffer> buffers;
  std::list<std::vector<std::byte>> values; ///< of parameters
  uint64_t limit = 1 << 20;                 ///< instructions

  void give(const void *value, size_t bytes) {
    const auto *first = static_cast<const std::byte *>(value);
    launch.parameters.push_back(values.emplace_back(first, first + bytes).data());
  }
  template <class T> void give(std::istream &line) {
    T value{};
    line >> value;
    give(&value, sizeof value);
  }
};

void put(Buffer &buffer, uint32_t bits, size_t width) {
  std::memcpy(buffer.data() + buffer.bytes, &bits, width);
  buffer.bytes += width;
}

/// Normal numbers; bytes are any that are numbers.
void fillBuffer(Buffer &buffer, const std::string &type, size_t count, std::istream &line, const std::string &file) {
  buffer.type = typeSpelled(type).value_or(Type::B8); // e4m3, e5m2
  const auto width = static_cast<size_t>(bytesOf(buffer.type));
  buffer.words.resize(count * width / 8 + 32);
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal;
  std::string first;
  line >> first;
  buffer.isWritten = first != "none";
  if (first == "file") {
    buffer.bytes = count * width;
    std::ifstream(file + ".bin", std::ios::binary)
        .read(reinterpret_cast<char *>(buffer.data()), static_cast<std::streamsize>(buffer.bytes));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    if (first == "random" && type == "e4m3") {
      do
        bits = random() & 0xff;
      while ((bits & 0x7f) == 0x7f);
    } else if (first == "random") {
      const float value = normal(random);
      std::memcpy(&bits, &value, sizeof bits);
      bits = type == "bf16" ? bits >> 16 : bits;
    } else if (first != "none") {
      bits = static_cast<uint32_t>(std::stol(first));
      line >> first;
    }
    put(buffer, bits, width);
  }
}

void map(Setup &setup, std::istream &line) {
  std::string name;
  TensorMap made;
  line >> name >> made.swizzleBytes >> made.rank;
  Buffer &buffer = setup.buffers.at(name);
  made.base = reinterpret_cast<uint64_t>(buffer.data());
  made.type = buffer.type;
  made.elementBytes = static_cast<uint32_t>(bytesOf(buffer.type));
  uint64_t stride = made.elementBytes;
  for (uint32_t axis = 0; axis < made.rank; ++axis) {
    line >> made.extents[axis];
    made.strides[axis] = stride;
    stride *= made.extents[axis];
  }
  for (uint32_t axis = 0; axis < made.rank; ++axis)
    line >> made.box[axis];
  const auto object = encode(made);
  setup.give(object.data(), object.size());
}

void giveBytes(Setup &setup, std::istream &line) {
  std::string digits;
  line >> digits;
  std::vector<std::byte> bytes;
  for (size_t at = 0; at + 1 < digits.size(); at += 2)
    bytes.push_back(std::byte(std::stoul(digits.substr(at, 2), nullptr, 16)));
  setup.give(bytes.data(), bytes.size());
}

Setup read(const char *path, const std::string &folder) {
  Setup setup;
  std::ifstream file(path);
  const auto extent = [](std::istream &line, Extent &to) { line >> to[0] >> to[1] >> to[2]; };
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string what, name, type;
    line >> what;
    if (what == "entry") {
      line >> setup.entry;
    } else if (what == "grid") {
      extent(line, setup.launch.grid);
    } else if (what == "block") {
      extent(line, setup.launch.block);
    } else if (what == "cluster") {
      extent(line, setup.launch.cluster);
    } else if (what == "shared") {
      line >> setup.launch.sharedBytes;
    } else if (what == "limit") {
      line >> setup.limit;
    } else if (what == "buffer") {
      size_t count = 0;
      line >> name >> type >> count;
      fillBuffer(setup.buffers[name], type, count, line, folder + "/" + name);
    } else if (what == "map") {
      map(setup, line);
    } else if (what == "give") {
      line >> name;
      const std::byte *data = setup.buffers.at(name).data();
      setup.give(&data, sizeof data);
    } else if (what == "bytes") {
      giveBytes(setup, line);
    } else if (what == "u32") {
      setup.give<uint32_t>(line);
    } else if (what == "u64") {
      setup.give<uint64_t>(line);
    } else if (what == "f32") {
      setup.give<float>(line);
    }
  }
  return setup;
}

/// The launch of `setup`, whose buffers are all the memory there is.
Expected<Counts> launch(const Kernel &kernel, Setup &setup, const Options &options) {
  GlobalMemory memory;
  for (auto &[name, buffer] : setup.buffers)
    memory.add(buffer.data(), buffer.bytes, name, buffer.isWritten);
  return run(kernel, setup.launch, memory, options);
}

/// Launches under `seed` until a second has passed.
std::string speed(const Kernel &kernel, const char *description, uint64_t seed, bool isStrict) {
  uint64_t instructions = 0, multiplyAdds = 0;
  std::clock_t ticks = 0;
  while (ticks < CLOCKS_PER_SEC) {
    Setup setup = read(description, "");
    Options options;
    options.isStrict = isStrict;
    options.seed = seed;
    const std::clock_t begin = std::clock();
    const Expected<Counts> counts = launch(kernel, setup, options);
    ticks += std::clock() - begin;
    if (!counts)
      return counts.error().text();
    instructions += counts->instructions;
    multiplyAdds += counts->multiplyAdds;
  }
  const double seconds = double(ticks) / CLOCKS_PER_SEC;
  char said[128];
  std::snprintf(said, sizeof said, "%s: %.2f million warp instructions/s, %.2f billion operations/s of products",
                isStrict ? "strict" : "plain", double(instructions) / seconds * 1e-6,
                double(2 * multiplyAdds) / seconds * 1e-9);
  return said;
}

std::string runOnce(const Kernel &kernel, const char *description, uint64_t seed, bool isByWarp,
                    const std::string &folder) {
  Setup setup = read(description, folder);
  Options options;
  options.isStrict = true;
  options.isByWarp = isByWarp;
  options.seed = seed;
  options.idleInstructions = setup.limit / 4;
  options.maxInstructions = setup.limit;
  const Expected<Counts> counts = launch(kernel, setup, options);
  if (!counts)
    return counts.error().text();
  std::string left;
  for (auto &[name, buffer] : setup.buffers) {
    left.append(reinterpret_cast<const char *>(buffer.data()), buffer.bytes);
    if (!folder.empty())
      std::ofstream(folder + "/" + name + ".out", std::ios::binary)
          .write(reinterpret_cast<const char *>(buffer.data()), static_cast<std::streamsize>(buffer.bytes));
  }
  return "left " + std::to_string(std::hash<std::string>()(left));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5)
    return 2;
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  Expected<Module> module = parse(text.str(), argv[1]);
  if (!module)
    return std::puts(module.error().text().c_str()), 0;
  const std::string how = argc == 5 ? argv[4] : "";
  const bool isByWarp = how == "by-warp", isTimed = how == "speed";
  const std::string folder = isByWarp || isTimed ? "" : how;
  Expected<Kernel> kernel = Kernel::decode(*module, read(argv[2], folder).entry);
  if (!kernel)
    return std::puts(kernel.error().text().c_str()), 0;
  for (uint64_t seed = 1; seed <= std::stoul(argv[3]); ++seed)
    if (isTimed)
      for (const bool isStrict : {false, true})
        std::puts(speed(*kernel, argv[2], seed, isStrict).c_str());
    else
      std::puts(runOnce(*kernel, argv[2], seed, isByWarp, folder).c_str());
  return 0;
}
