//===- CommandLine.cpp - From arguments to an exit code -----------------------===//
#include "CommandLine.h"
#include "base/Utf8.h"
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <set>

using namespace k2c;

int k2c::fail(const std::string &text) {
  std::fprintf(stderr, "k2c: error: %s\n", text.c_str());
  return 1;
}

int k2c::fail(const Error &error) {
  const int users = fail(error.text());
  return error.code == K2RT_DEVICE_FAILED ? 3 : users;
}

int k2c::failUsage(const std::string &text) {
  fail(text);
  return 2;
}

CLI::Validator k2c::whole(int64_t least, int64_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [least, most, range](std::string &text) {
        int64_t value = 0;
        const char *const end = text.data() + text.size();
        const auto [next, problem] = std::from_chars(text.data(), end, value);
        if (problem != std::errc() || next != end || value < least || value > most)
          return "'" + shortened(text) + "' is not a whole number from " + range;
        text = std::to_string(value);
        return std::string();
      },
      range);
}

namespace {

/// What was wrong with the command line, and whose --help says how it is right.
int usageError(const CLI::App &app, const std::string &first, const std::string &what) {
  const auto commands = app.get_subcommands([](const CLI::App *) { return true; });
  bool isCommand = false;
  for (const CLI::App *command : commands)
    isCommand |= command->get_name() == first;
  const bool isUnknown = !commands.empty() && !isCommand && !first.empty() && first[0] != '-';
  const std::string help = app.get_name() + (isCommand ? " " + first : "") + " --help";
  return failUsage((isUnknown ? "there is no command '" + shortened(first) + "'" : what) + "; see " + help);
}

/// The first option that was given an empty value. A text to continue may be empty, nothing else; "": none.
std::string emptyOption(const CLI::App &app) {
  static const std::set<std::string> texts = {"--prompt", "ARGS"};
  for (const CLI::Option *option : app.get_options())
    for (const std::string &value : option->results())
      if (value.empty() && !texts.count(option->get_name()))
        return option->get_name();
  for (const CLI::App *command : app.get_subcommands())
    if (const std::string name = emptyOption(*command); !name.empty())
      return name;
  return "";
}

/// Takes no memory itself.
int failWithoutMemory() {
  std::fprintf(stderr, "k2c: error: the system refuses memory; free some, or ask for less\n");
  return 1;
}

std::terminate_handler otherwise = nullptr;

/// nlohmann-json takes memory to free a value, in a destructor, which no exception may leave.
void endWithoutMemory() {
  try {
    if (std::current_exception())
      throw;
  } catch (const std::bad_alloc &) {
    std::_Exit(failWithoutMemory());
  } catch (...) {
  }
  otherwise();
}

/// What a library throws in spite of its rules is one line too.
int guarded(const std::function<int()> &run) {
  otherwise = std::set_terminate(endWithoutMemory);
  try {
    return run();
  } catch (const std::bad_alloc &) {
    return failWithoutMemory();
  } catch (const std::exception &unexpected) {
    return fail("unexpected: " + shortened(unexpected.what(), maxQuoted));
  }
}

} // namespace

int k2c::runCommandLine(CLI::App &app, int argc, char **argv, const std::function<int()> &run) {
  const std::string first = argc > 1 ? argv[1] : "";
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (argc == 1 && error.get_exit_code() != 0) {
      std::fputs(app.help().c_str(), stderr);
      return 2;
    }
    return error.get_exit_code() == 0 ? app.exit(error) : usageError(app, first, shortened(error.what(), maxQuoted));
  }
  if (const std::string name = emptyOption(app); !name.empty())
    return usageError(app, first, name + ": is empty");
  const int code = guarded(run);
  if (!std::cout.flush() || std::fflush(stdout) != 0)
    return fail("standard output: cannot be written; free space on its disk");
  return code;
}
