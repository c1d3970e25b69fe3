// A machine's proc and sys files, laid out in a folder.
#ifndef K2RT_UNIT_ROOT_H
#define K2RT_UNIT_ROOT_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace k2c::runtime {

/// A root folder with the files given as (path, content).
class Root {
public:
  explicit Root(const std::vector<std::pair<std::string, std::string>> &files) {
    std::string name = (std::filesystem::temp_directory_path() / "k2rt-root-XXXXXX").string();
    folder = std::string(::mkdtemp(name.data())) + "/";
    for (const auto &[path, content] : files) {
      std::filesystem::create_directories(std::filesystem::path(folder + path).parent_path());
      std::ofstream(folder + path) << content;
    }
  }
  ~Root() { std::filesystem::remove_all(folder); }
  std::string folder;
};

} // namespace k2c::runtime

#endif
