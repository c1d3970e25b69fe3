//===- InspectOnnx.h - k2c inspect model.onnx ---------------------------------===//
#ifndef K2C_TOOLS_K2C_INSPECTONNX_H
#define K2C_TOOLS_K2C_INSPECTONNX_H

#include <string>

namespace k2c {

/// Prints the decoder that a .onnx file is, or what was understood of it and why it is refused; the exit code.
int printOnnx(const std::string &path, bool asJson);

} // namespace k2c

#endif // K2C_TOOLS_K2C_INSPECTONNX_H
