//===- ExportFolder.cpp - The folder that k2c export writes -----------------===//
#include "ExportFolder.h"

#include "base/JsonText.h"

namespace k2c {

Status writeExportFolder(const ExportOptions &options, const std::string &formatName, const std::string &from,
                         const std::function<Status(const BundleFolder &)> &fill) {
  Expected<BundleFolder> folder = BundleFolder::begin(options.output, from, options.force, FolderContents::Export);
  if (!folder)
    return folder.takeError();
  const nlohmann::ordered_json made = {{"format", 1}, {"contents", formatName}, {"made_by", "k2c " + options.version}};
  Status status = fill(*folder);
  if (status)
    status = folder->write(exportFile, jsonText(made, 2) + "\n");
  if (status)
    status = folder->finish();
  return status ? Status() : Status(folder->abandon(status.error()));
}

} // namespace k2c
