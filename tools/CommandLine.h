//===- CommandLine.h - From arguments to an exit code -------------------------===//
//
// What the command lines of k2c and k2c-plan share: a mistake is one line on stderr, and the exit code says whose it
// is.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TOOLS_COMMANDLINE_H
#define K2C_TOOLS_COMMANDLINE_H

#include "base/Error.h"
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace k2c {

/// Prints "k2c: error: TEXT" on stderr; the exit code of a user's mistake.
int fail(const std::string &text);

/// Likewise; the exit code is that of a device that failed where that is what went wrong.
int fail(const Error &error);

/// As fail, of a command line that asks for nothing: the exit code of wrong usage.
int failUsage(const std::string &text);

/// For Option::transform: a whole number from `least` to `most` in decimal digits. CLI11 alone would read 010 as eight.
CLI::Validator whole(int64_t least, int64_t most);

/// Parses the arguments with `app` and calls `run`, which the parse may have set. Returns the program's exit code: 2
/// for wrong usage, which an empty value of an option is too; else what `run` returned, or 1 where standard output
/// cannot be written or the system refuses memory.
int runCommandLine(CLI::App &app, int argc, char **argv, const std::function<int()> &run);

} // namespace k2c

#endif // K2C_TOOLS_COMMANDLINE_H
