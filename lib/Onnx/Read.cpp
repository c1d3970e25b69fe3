//===- Read.cpp - an ONNX file to its graph -----------------------------------===//
//
//   bytes -> messages (ReadMessages.cpp) -> one graph without functions (Inline.cpp) -> sorted, needed (Order.cpp)
//
// The file is read once, front to back, through a small buffer; bytes of weights are skipped, so that memory is that of
// the graph whatever the file's size.
//
//===----------------------------------------------------------------------===//
#include "Flat.h"
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace k2c::onnx {

namespace {

Expected<Files::File> openModel(const std::string &path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts;
  if (file.number < 0 || ::fstat(file.number, &facts) != 0)
    return systemError(path, "cannot open", errno);
  if (!S_ISREG(facts.st_mode))
    return Error{path, "is not a regular file", "name the .onnx file of a model"};
  if (facts.st_size > Wire::maxBytes)
    return Error{path,
                 "has " + std::to_string(facts.st_size) + " bytes, at most " + std::to_string(Wire::maxBytes) +
                     " are read",
                 "save the model with external data"};
  return Files::File{path, std::filesystem::path(path).filename().string(), facts.st_size, std::move(file)};
}

/// Reads the messages of file 0 of `external`.
Expected<ModelMessage> readMessages(ExternalData &external, Budget &budget) {
  const Files::File &file = external.model();
  const std::string path = file.path;
  google::protobuf::io::FileInputStream stream(file.descriptor.number);
  Wire wire(stream, file.bytes, path, budget);
  ModelMessage model = readModelMessage(wire, external);
  if (stream.GetErrno() != 0)
    return systemError(path, "cannot read", stream.GetErrno());
  if (wire.failed())
    return wire.status().takeError();
  return model;
}

Status checkModel(const ModelMessage &model, const std::string &path) {
  constexpr int64_t least = 3, most = 14;
  if (model.irVersion < least || model.irVersion > most)
    return Error{path,
                 "IR version " + std::to_string(model.irVersion) + " is not read, " + std::to_string(least) + " to " +
                     std::to_string(most) + " are",
                 "is it an ONNX model? If so, convert it with the onnx package"};
  if (model.hasTraining)
    return Error{path, "has training information", "export the model for inference"};
  if (model.graph.outputs.empty())
    return Error{path, "has no graph, or one without outputs", damagedModel};
  return {};
}

/// Moves values, initializers, inputs and outputs to `flat`.
Status addPorts(GraphMessage &message, FlatGraph &flat) {
  Graph &graph = flat.graph;
  const auto unnamed = [&](const char *what) {
    return Error{graph.path, std::string(what) + " of the model has no name", damagedModel};
  };
  graph.values = std::move(message.values);
  flat.definedBy.assign(graph.values.size(), FlatGraph::nobody);
  for (InitializerMessage &initializer : message.initializers) {
    if (initializer.value == noValue)
      return unnamed("an initializer");
    if (Status done = flat.defineConstant(initializer.value, std::move(initializer.tensor), FlatGraph::initializer);
        !done)
      return done;
  }
  for (ValueId value : message.sparse) {
    if (Status done = flat.define(value, FlatGraph::initializer); !done)
      return done;
    flat.unreadableValues[value] = "a sparse tensor";
  }
  for (PortMessage &input : message.inputs) {
    const ValueId value = input.port.value;
    if (value == noValue)
      return unnamed("an input");
    // Initializers of IR version 3 are inputs, too, and constants none the less.
    if (flat.definedBy[static_cast<size_t>(value)] == FlatGraph::initializer)
      continue;
    if (Status done = flat.define(value, FlatGraph::input); !done)
      return done;
    if (!input.otherType.empty())
      flat.unreadableValues[value] = "of type " + input.otherType;
    graph.inputs.push_back(std::move(input.port));
  }
  for (PortMessage &output : message.outputs) {
    if (output.port.value == noValue)
      return unnamed("an output");
    if (!output.otherType.empty())
      flat.unreadableValues[output.port.value] = "of type " + output.otherType;
    graph.outputs.push_back(std::move(output.port));
  }
  return {};
}

} // namespace

Expected<Graph> readGraph(const std::string &path) {
  Expected<Files::File> opened = openModel(path);
  if (!opened)
    return opened.takeError();
  Budget budget;
  ExternalData external(std::move(*opened));
  Expected<ModelMessage> model = readMessages(external, budget);
  if (!model)
    return model.takeError();
  FlatGraph flat;
  flat.graph.path = path;
  flat.graph.irVersion = model->irVersion;
  flat.graph.producer = model->producerName + (model->producerVersion.empty() ? "" : " " + model->producerVersion);
  if (Status checked = checkModel(*model, path); !checked)
    return checked.takeError();
  if (Status checked = external.checkOverlaps(); !checked)
    return checked.takeError();
  if (Status added = addPorts(model->graph, flat); !added)
    return added.takeError();
  if (Status done = inlineFunctions(*model, flat, budget); !done)
    return done.takeError();
  if (Status done = orderNodes(flat); !done)
    return done.takeError();
  flat.graph.files = external.take();
  return std::move(flat.graph);
}

} // namespace k2c::onnx
