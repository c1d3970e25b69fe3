//===- DataFile.cpp - the weights of a graph that is written ----------------------===//
//
// Tensors are float32, which bf16 and f16 widen to exactly. MatMul takes a matrix as [depth, columns], and checkpoints
// store [columns, depth]: a block of rows is read, turned in memory and written as a run in each row of the file. A
// Transpose node in place of it would be turned by every start of every runtime, which then holds both.
//
//===----------------------------------------------------------------------===//
#include "DataFile.h"

#include "k2c/Model/Rope.h"
#include "k2c/Support/Half.h"
#include "k2c/Weights/Finite.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <unistd.h>

namespace k2c::onnx {

int64_t DataTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

namespace {

constexpr int64_t pageBytes = 4096, smallAlignment = 64;
/// Of what is read at a time; a block that is turned has more, for each of its rows is a run of a write of its own.
constexpr int64_t pieceElements = int64_t(1) << 20, turnedElements = int64_t(1) << 23;

/// Writes the tensors of one file.
class DataWriter {
public:
  DataWriter(const std::string &path, const TensorSource &tensors, int64_t total,
             const std::function<void(int64_t, int64_t)> &progress)
      : path(path), tensors(tensors), total(total), progress(progress),
        file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {}

  Status open() const { return file.number >= 0 ? Status() : failure("cannot be created", errno); }
  /// Brings the file to its size and to the disk.
  Status close() {
    if (::ftruncate(file.number, total) != 0 || ::fsync(file.number) != 0)
      return failure("cannot be written", errno);
    return {};
  }
  Status write(const DataTensor &tensor);

private:
  Error failure(const std::string &what, int code) const {
    return {path, what + ": " + std::strerror(code), "check space and permissions"};
  }
  Status put(int64_t offset, const float *values, int64_t count);
  Status read(const std::string &name, int64_t first, int64_t count, float *out);
  Status copy(const DataTensor &tensor);
  Status takeTurns(const DataTensor &tensor);
  Status turn(const DataTensor &tensor);
  Status tabulate(const DataTensor &tensor);
  void report(int64_t elements) {
    done += elements * int64_t(sizeof(float));
    if (progress)
      progress(done, total);
  }

  const std::string &path;
  const TensorSource &tensors;
  const int64_t total;
  const std::function<void(int64_t, int64_t)> &progress;
  Descriptor file;
  int64_t done = 0;
  std::vector<char> stored;
  std::vector<float> values;
};

Status DataWriter::put(int64_t offset, const float *values, int64_t count) {
  const char *bytes = reinterpret_cast<const char *>(values);
  for (int64_t left = count * int64_t(sizeof(float)); left > 0;) {
    const ssize_t written = ::pwrite(file.number, bytes, size_t(left), offset);
    if (written <= 0 && errno != EINTR)
      return failure("cannot be written", written == 0 ? ENOSPC : errno);
    const int64_t count = std::max<ssize_t>(written, 0);
    bytes += count;
    offset += count;
    left -= count;
  }
  return {};
}

/// Elements [first, first + count) of a tensor as float32.
Status DataWriter::read(const std::string &name, int64_t first, int64_t count, float *out) {
  const Expected<StoredTensor> found = tensors.find(name);
  if (!found)
    return found.error();
  if (found->type == DType::F32)
    return readFinite(tensors, name, found->type, first, count, reinterpret_cast<char *>(out));
  stored.resize(size_t(count * byteWidth(found->type)));
  if (Status status = readFinite(tensors, name, found->type, first, count, stored.data()); !status)
    return status;
  for (int64_t i = 0; i < count; i++) {
    uint16_t narrow;
    std::memcpy(&narrow, stored.data() + 2 * i, sizeof narrow);
    const uint32_t wide = widen16(found->type, narrow);
    std::memcpy(out + i, &wide, sizeof wide);
  }
  return {};
}

Status DataWriter::copy(const DataTensor &tensor) {
  const int64_t each = tensor.elements() / int64_t(tensor.sources.size());
  int64_t offset = tensor.offset;
  for (const std::string &source : tensor.sources)
    for (int64_t first = 0; first < each; first += pieceElements) {
      const int64_t count = std::min(pieceElements, each - first);
      values.resize(size_t(count));
      if (Status status = read(source, first, count, values.data()); !status)
        return status;
      if (Status status = put(offset, values.data(), count); !status)
        return status;
      offset += count * int64_t(sizeof(float));
      report(count);
    }
  return {};
}

Status DataWriter::takeTurns(const DataTensor &tensor) {
  const int64_t columns = tensor.shape.back();
  const int64_t rows = tensor.elements() / int64_t(tensor.sources.size()) / columns;
  const int64_t most = std::max<int64_t>(1, pieceElements / columns);
  int64_t offset = tensor.offset;
  std::vector<float> both[2];
  for (size_t pair = 0; pair < tensor.sources.size(); pair += 2)
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      for (size_t side : {0, 1}) {
        both[side].resize(size_t(count * columns));
        if (Status status = read(tensor.sources[pair + side], first * columns, count * columns, both[side].data());
            !status)
          return status;
      }
      values.resize(size_t(2 * count * columns));
      for (int64_t row = 0; row < 2 * count; row++)
        std::copy_n(both[row % 2].data() + row / 2 * columns, columns, values.data() + row * columns);
      if (Status status = put(offset, values.data(), 2 * count * columns); !status)
        return status;
      offset += 2 * count * columns * int64_t(sizeof(float));
      report(2 * count * columns);
    }
  return {};
}

Status DataWriter::turn(const DataTensor &tensor) {
  const int64_t depth = tensor.shape[0], columns = tensor.shape[1];
  const int64_t most = std::max<int64_t>(1, turnedElements / depth);
  constexpr int64_t tile = 32; // rows and columns that fit in the first-level cache
  std::vector<float> rows;
  for (int64_t first = 0; first < columns; first += most) {
    const int64_t count = std::min(most, columns - first);
    rows.resize(size_t(count * depth));
    values.resize(rows.size());
    if (Status status = read(tensor.sources[0], first * depth, count * depth, rows.data()); !status)
      return status;
    for (int64_t i = 0; i < count; i += tile)
      for (int64_t k = 0; k < depth; k += tile)
        for (int64_t r = i; r < std::min(i + tile, count); r++)
          for (int64_t c = k; c < std::min(k + tile, depth); c++)
            values[size_t(c * count + r)] = rows[size_t(r * depth + c)];
    const bool isWhole = count == columns;
    for (int64_t k = 0; k < (isWhole ? 1 : depth); k++)
      if (Status status = put(tensor.offset + (k * columns + first) * int64_t(sizeof(float)), values.data() + k * count,
                              isWhole ? depth * columns : count);
          !status)
        return status;
    report(count * depth);
  }
  return {};
}

Status DataWriter::tabulate(const DataTensor &tensor) {
  const int64_t pairs = tensor.shape[1], most = std::max<int64_t>(1, pieceElements / pairs);
  std::vector<float> both;
  for (int64_t first = 0; first < tensor.shape[0]; first += most) {
    const int64_t count = std::min(most, tensor.shape[0] - first);
    both.resize(size_t(2 * count * pairs));
    values.resize(size_t(count * pairs));
    ropeTableRows(tensor.rope, first, count, both.data());
    const int64_t side = tensor.order == DataTensor::Order::Sines ? pairs : 0;
    for (int64_t row = 0; row < count; row++)
      std::copy_n(both.data() + 2 * row * pairs + side, pairs, values.data() + row * pairs);
    if (Status status = put(tensor.offset + first * pairs * int64_t(sizeof(float)), values.data(), count * pairs);
        !status)
      return status;
    report(count * pairs);
  }
  return {};
}

Status DataWriter::write(const DataTensor &tensor) {
  switch (tensor.order) {
  case DataTensor::Order::AsStored:
    return copy(tensor);
  case DataTensor::Order::InTurns:
    return takeTurns(tensor);
  case DataTensor::Order::Transposed:
    return turn(tensor);
  case DataTensor::Order::Cosines:
  case DataTensor::Order::Sines:
    break;
  }
  return tabulate(tensor);
}

} // namespace

int64_t DataFile::add(DataTensor tensor) {
  const int64_t size = tensor.elements() * int64_t(sizeof(float));
  const int64_t alignment = size >= pageBytes ? pageBytes : smallAlignment;
  tensor.offset = (end + alignment - 1) / alignment * alignment;
  end = tensor.offset + size;
  tensors.push_back(std::move(tensor));
  return tensors.back().offset;
}

Status DataFile::write(const std::string &path, const TensorSource &source,
                       const std::function<void(int64_t, int64_t)> &progress) const {
  DataWriter writer(path, source, end, progress);
  if (Status status = writer.open(); !status)
    return status;
  for (const DataTensor &tensor : tensors)
    if (Status status = writer.write(tensor); !status)
      return status;
  return writer.close();
}

} // namespace k2c::onnx
