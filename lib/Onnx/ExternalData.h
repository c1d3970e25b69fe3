//===- ExternalData.h - files that tensors lie in -----------------------------===//
//
// A model names the files of its external data, and a model is hostile input: a file is opened only where it lies in
// the model's folder, whatever links lead to it; of a snapshot in the cache of Hugging Face, whose files are links, in
// that repository's blobs, too. So it is looked up first without opening it (O_PATH, which wakes no
// device and waits for no FIFO), the system is asked where that is, and only a regular file below the folder is opened,
// by the descriptor that was asked about.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_EXTERNALDATA_H
#define K2C_LIB_ONNX_EXTERNALDATA_H

#include "Graph.h"
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace k2c::onnx {

/// external_data of a tensor; the numbers are decimal text, "" where they are not given.
struct ExternalEntry {
  std::string location, offset, length;
};

/// Collects the files of a model's tensors as the tensors are read.
class ExternalData {
public:
  /// More are refused: each stays open, and a process may have 1,024 files.
  static constexpr size_t maxFiles = 512;

  /// `model`: the open .onnx file, which becomes file 0.
  explicit ExternalData(Files::File model);

  /// File 0; valid until a file is opened.
  const Files::File &model() const { return files->files[0]; }

  /// Sets the file and offset of `tensor`, whose name, type and shape are known. Error: the file is not there, not in
  /// one of these folders or not regular, or the tensor does not lie in it.
  Status place(Tensor &tensor, const ExternalEntry &entry);

  /// Refuses tensors that share a part of their bytes; those that share all are one weight with several names.
  Status checkOverlaps();

  /// Ends the use of the object.
  std::shared_ptr<const Files> take();

private:
  /// A tensor's bytes in a file of external data.
  struct Segment {
    int64_t file = 0, begin = 0, end = 0;
    std::string tensor;
  };

  Expected<int64_t> fileNumber(const std::string &tensor, const std::string &location);
  Error refused(const std::string &tensor, std::string message, std::string remedy) const;

  std::string folder;
  std::shared_ptr<Files> files = std::make_shared<Files>();
  std::unordered_map<std::string, int64_t> numbers; ///< by location
  std::vector<Segment> segments;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_EXTERNALDATA_H
