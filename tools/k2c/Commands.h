//===- Commands.h - The commands of k2c -----------------------------------===//
#ifndef K2C_TOOLS_K2C_COMMANDS_H
#define K2C_TOOLS_K2C_COMMANDS_H

#include "../CommandLine.h"
#include "base/Error.h"

namespace k2c {

/// Each declares its flags on `app`, and sets `run` when it was chosen; `run` returns the exit code.
using Command = void (*)(CLI::App &app, std::function<int()> &run);
void addCompile(CLI::App &app, std::function<int()> &run);
void addRun(CLI::App &app, std::function<int()> &run);
void addPlan(CLI::App &app, std::function<int()> &run);
void addPack(CLI::App &app, std::function<int()> &run);
void addVerify(CLI::App &app, std::function<int()> &run);
void addInspect(CLI::App &app, std::function<int()> &run);
void addExplain(CLI::App &app, std::function<int()> &run);
void addCalibrate(CLI::App &app, std::function<int()> &run);
void addPredict(CLI::App &app, std::function<int()> &run);
void addKnown(CLI::App &app, std::function<int()> &run);
void addDoctor(CLI::App &app, std::function<int()> &run);
void addCache(CLI::App &app, std::function<int()> &run);

/// Declares --compute, which compile and run have.
void addCompute(CLI::App &command, std::string &compute);

/// Prints what `bundle` is in five lines: folder and size, certificate, limits, predicted tokens/s, the next command.
Status printSummary(const std::string &bundle);

/// What an interrupt adds to "k2c: interrupted": what is left, and how to go on.
void setInterruptNote(const std::string &note);

/// Prints "k2c: note: TEXT" on stderr.
void printNote(const std::string &text);

/// A progress bar on stderr for work over two seconds when stderr is a terminal; callable from any thread.
std::function<void(const std::string &, int64_t, int64_t)> progressBar();

} // namespace k2c

#endif // K2C_TOOLS_K2C_COMMANDS_H
