//===- ToolOutput.cpp - Programs that are spawned, and what they say ---------------------===//
#include "ToolOutput.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using llvm::StringRef;

namespace k2c {

Expected<std::string> temporaryFile(StringRef suffix) {
  llvm::SmallString<128> path;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("k2c", suffix, path))
    return Error{"the folder of temporary files", error.message(), "set TMPDIR to a folder that can be written"};
  return path.str().str();
}

Expected<ToolOutput> runTool(const std::string &tool, std::vector<StringRef> arguments, const std::string &place) {
  Expected<std::string> out = temporaryFile("out");
  if (!out)
    return out.takeError();
  llvm::FileRemover removeOut(*out);
  Expected<std::string> messages = temporaryFile("messages");
  if (!messages)
    return messages.takeError();
  llvm::FileRemover removeMessages(*messages);
  arguments.insert(arguments.begin(), tool);
  std::string problem;
  const int status =
      llvm::sys::ExecuteAndWait(tool, arguments, std::nullopt, {StringRef(), *out, *messages}, 0, 0, &problem);
  auto textOf = [](StringRef path) {
    auto file = llvm::MemoryBuffer::getFile(path);
    return file ? (*file)->getBuffer().str() : std::string();
  };
  ToolOutput output{textOf(*out), textOf(*messages)};
  if (status != 0)
    return Error{
        place, llvm::sys::path::filename(tool).str() + " failed: " + problem + StringRef(output.messages).rtrim().str(),
        ""};
  return output;
}

} // namespace k2c
