// run-ptx TEXT.ptx LAUNCH SEEDS: launches an entry under each seed, races looked for and wgmma ending by warp, and
// prints a hash of what it has left in its buffers, or what was found. LAUNCH has a line each:
//   entry NAME | grid X Y Z | block X | cluster X | shared BYTES | map BUFFER ELEMENT_BYTES SWIZZLE RANK EXTENTS..
//   BOX.. | buffer NAME TYPE COUNT none|random|VALUES.. | give BUFFER | u32 VALUE | f32 VALUE
// Buffers are bf16, e4m3, f32 or s32; what is given and mapped are the parameters, in this order.
#include "k2c/Ptx/Machine.h"
#include "k2c/Ptx/TensorMap.h"

#include <cstdio>
#include <cstring>
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
  uint64_t bytes = 0;
  bool isWritten = true;
  std::byte *data() { return reinterpret_cast<std::byte *>(words.data()); }
};

struct Setup {
  std::string entry;
  Launch launch;
  std::map<std::string, Buffer> buffers;
  std::list<std::array<std::byte, tensorMapBytes>> values; ///< of parameters

  template <class T> void give(const T &value) {
    std::memcpy(values.emplace_back().data(), &value, sizeof value);
    launch.parameters.push_back(values.back().data());
  }
};

void put(Buffer &buffer, uint32_t bits, size_t width) {
  std::memcpy(buffer.data() + buffer.bytes, &bits, width);
  buffer.bytes += width;
}

/// Normal numbers; bytes are any that are numbers.
void fillBuffer(Buffer &buffer, const std::string &type, size_t count, std::istream &line) {
  const size_t width = type == "bf16" ? 2 : type == "e4m3" ? 1 : 4;
  buffer.words.resize(count * width / 8 + 32);
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal;
  std::string first;
  line >> first;
  buffer.isWritten = first != "none";
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
  line >> name >> made.elementBytes >> made.swizzleBytes >> made.rank;
  made.base = reinterpret_cast<uint64_t>(setup.buffers.at(name).data());
  uint64_t stride = made.elementBytes;
  for (uint32_t axis = 0; axis < made.rank; ++axis) {
    line >> made.extents[axis];
    made.strides[axis] = stride;
    stride *= made.extents[axis];
  }
  for (uint32_t axis = 0; axis < made.rank; ++axis)
    line >> made.box[axis];
  setup.give(encode(made));
}

Setup read(const char *path) {
  Setup setup;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string what, name, type;
    line >> what;
    if (what == "entry") {
      line >> setup.entry;
    } else if (what == "grid") {
      line >> setup.launch.grid[0] >> setup.launch.grid[1] >> setup.launch.grid[2];
    } else if (what == "block") {
      line >> setup.launch.block[0];
    } else if (what == "shared") {
      line >> setup.launch.sharedBytes;
    } else if (what == "buffer") {
      size_t count = 0;
      line >> name >> type >> count;
      fillBuffer(setup.buffers[name], type, count, line);
    } else if (what == "map") {
      map(setup, line);
    } else if (what == "give") {
      line >> name;
      setup.give(setup.buffers.at(name).data());
    } else if (what == "u32") {
      uint32_t value = 0;
      line >> value;
      setup.give(value);
    } else if (what == "f32") {
      float value = 0;
      line >> value;
      setup.give(value);
    }
  }
  return setup;
}

std::string runOnce(const Kernel &kernel, const char *launch, uint64_t seed, bool isByWarp) {
  Setup setup = read(launch);
  GlobalMemory memory;
  for (auto &[name, buffer] : setup.buffers)
    memory.add(buffer.data(), buffer.bytes, name, buffer.isWritten);
  Options options;
  options.isStrict = true;
  options.isByWarp = isByWarp;
  options.seed = seed;
  options.idleInstructions = 1 << 18;
  options.maxInstructions = 1 << 20;
  const Expected<Counts> counts = run(kernel, setup.launch, memory, options);
  if (!counts)
    return counts.error().text();
  std::string left;
  for (auto &[name, buffer] : setup.buffers)
    left.append(reinterpret_cast<const char *>(buffer.data()), buffer.bytes);
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
  Expected<Kernel> kernel = Kernel::decode(*module, read(argv[2]).entry);
  if (!kernel)
    return std::puts(kernel.error().text().c_str()), 0;
  for (uint64_t seed = 1; seed <= std::stoul(argv[3]); ++seed)
    std::puts(runOnce(*kernel, argv[2], seed, argc == 5).c_str());
  return 0;
}
