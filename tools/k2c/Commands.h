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
void addExport(CLI::App &app, std::function<int()> &run);
void addPlace(CLI::App &app, std::function<int()> &run);
void addVerify(CLI::App &app, std::function<int()> &run);
void addInspect(CLI::App &app, std::function<int()> &run);
void addExplain(CLI::App &app, std::function<int()> &run);
void addDiff(CLI::App &app, std::function<int()> &run);
void addCalibrate(CLI::App &app, std::function<int()> &run);
void addPredict(CLI::App &app, std::function<int()> &run);
void addKnown(CLI::App &app, std::function<int()> &run);
void addDoctor(CLI::App &app, std::function<int()> &run);
void addCache(CLI::App &app, std::function<int()> &run);
void addCompletion(CLI::App &app, std::function<int()> &run);
/// The last of all: it reads what the others have declared.
void addManual(CLI::App &app, std::function<int()> &run);

/// The path of a program in the folders of $PATH; "": it is in none.
std::string onPath(const std::string &program);

/// Declares --compute, which compile and run have.
void addCompute(CLI::App &command, std::string &compute);

/// Declares --checkpoint of a command that compiles a bundle's model again.
CLI::Option *addCheckpoint(CLI::App &command, std::string &checkpoint);

/// Declares --widen.
void addWiden(CLI::App &command, bool &widen);
/// Declares --narrow.
void addNarrow(CLI::App &command, bool &narrow);

/// Prints what `bundle` is in five lines: folder and size, certificate, limits, predicted tokens/s, the next command.
Status printSummary(const std::string &bundle);

/// What an interrupt adds to "k2c: interrupted": what is left, and how to go on.
void setInterruptNote(const std::string &note);

/// What a command that takes long says on stderr, as its --progress and --quiet ask.
struct Console {
  std::string progress = "auto"; ///< auto | always | never
  bool quiet = false;

  /// Prints "k2c: note: TEXT"; null: nothing is to be said.
  std::function<void(const std::string &)> note() const;

  /// Shows a bar for (stage, done, total) with the time that is left; callable from any thread; null: none is wanted.
  std::function<void(const std::string &, int64_t, int64_t)> bar() const;
};

/// Declares --progress and --quiet.
std::shared_ptr<Console> addConsole(CLI::App &command);

/// Clears the line of a bar that is shown: before anything else is printed on stderr. May be called by a signal's
/// handler.
void eraseBar();

} // namespace k2c

#endif // K2C_TOOLS_K2C_COMMANDS_H
