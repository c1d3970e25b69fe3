//===- Manual.cpp - k2c man: pages of the manual --------------------------===//
//
// A page is the command's own declaration, in the man(7) macros: each argument and option once, with what it takes and
// its default, and the examples of --help. `cmake --install` writes all of them.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "k2c/Support/WriteFile.h"
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>

using namespace k2c;

namespace {

/// Text that troff prints as it is.
std::string plain(const std::string &text) {
  std::string out;
  for (const char c : text) {
    const bool startsLine = out.empty() || out.back() == '\n';
    if (startsLine && (c == '.' || c == '\''))
      out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

std::string section(const std::string &title, const std::string &text) {
  return text.empty() ? "" : ".SH " + title + "\n" + text + (text.back() == '\n' ? "" : "\n");
}

/// Lines as they stand.
std::string verbatim(const std::string &text) { return ".nf\n" + plain(text) + "\n.fi\n"; }

/// An argument or an option: its names, what it takes, what it means.
std::string entry(const CLI::Option &option) {
  std::string names;
  for (const std::string &name : CLI::detail::split(option.get_name(false, true), ','))
    names += (names.empty() ? "" : ", ") + ("\\fB" + plain(name) + "\\fR");
  const bool takesValue = option.get_items_expected_max() > 0;
  if (takesValue && !option.get_positional())
    names += " \\fI" + plain(option.get_type_name()) + "\\fR";
  const std::string initial = option.get_default_str();
  return ".TP\n" + names + "\n" + plain(option.get_description()) +
         (takesValue && !initial.empty() ? " (default: " + plain(initial) + ")" : "") + "\n";
}

std::vector<const CLI::App *> commandsOf(const CLI::App &app) {
  return app.get_subcommands([](const CLI::App *each) { return !each->get_group().empty(); });
}

/// "k2c-compile", and "k2c" itself.
std::string pageName(const CLI::App &command) {
  return (command.get_parent() ? command.get_parent()->get_name() + "-" : "") + command.get_name();
}

std::string page(const CLI::App &command) {
  std::string synopsis, arguments, options, commands, also;
  for (const CLI::Option *option : command.get_options()) {
    (option->get_positional() ? arguments : options) += entry(*option);
    if (option->get_positional())
      synopsis += option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
  }
  for (const CLI::App *each : commandsOf(command)) {
    commands += ".TP\n\\fB" + plain(each->get_name()) + "\\fR\n" + plain(each->get_description()) + "\n";
    also += (also.empty() ? "" : ",\n") + (".BR " + plain(pageName(*each)) + " (1)");
  }
  const CLI::App *parent = command.get_parent();
  const std::string described = command.get_description(), footer = command.get_footer();
  const size_t line = described.find('\n'), examples = footer.find('\n');
  std::string title = pageName(command);
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  return ".TH " + title + " 1 \"\" \"k2c " K2C_VERSION "\" \"k2c\"\n" +
         section("NAME", plain(pageName(command)) + " \\- " + plain(described.substr(0, line))) +
         section("SYNOPSIS", ".B " + plain((parent ? parent->get_name() + " " : "") + command.get_name()) + "\n" +
                                 plain((parent ? "[OPTIONS]" : "COMMAND [OPTIONS]") + synopsis)) +
         section("ARGUMENTS", arguments) + section("OPTIONS", options) + section("COMMANDS", commands) +
         section("EXAMPLES", line != described.npos
                                 ? verbatim(described.substr(described.find_first_not_of('\n', line)))
                             : examples != footer.npos ? verbatim(footer.substr(examples + 1))
                                                       : "") +
         section("EXIT STATUS", "0: success; 1: a mistake in what was given, said in one line; 2: wrong usage; 130: "
                                "interrupted. k2c diff: as diff(1).") +
         section("SEE ALSO", parent ? ".BR " + plain(parent->get_name()) + " (1)" : also);
}

int write(const CLI::App &app, const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::vector<const CLI::App *> all = commandsOf(app);
  all.push_back(&app);
  for (const CLI::App *each : all)
    if (Status status =
            writeFile(folder + "/" + pageName(*each) + ".1", page(*each), "name a folder that can be written");
        !status)
      return fail(status.error());
  return 0;
}

} // namespace

void k2c::addManual(CLI::App &app, std::function<int()> &run) {
  auto name = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  CLI::App *c = app.add_subcommand("man", "A page of the manual, or all of them");
  std::vector<std::string> names;
  for (const CLI::App *each : commandsOf(app))
    names.push_back(each->get_name());
  c->footer("examples:\n  k2c man compile | man -l -\n  k2c man -o ~/.local/share/man/man1");
  CLI::Option *chosen =
      c->add_option("COMMAND", *name, "the command (default: k2c itself)")->check(CLI::IsMember(names));
  c->add_option("-o,--output", *folder, "write all pages into this folder")->excludes(chosen);
  c->callback([=, &app, &run] {
    run = [=, &app] {
      if (!folder->empty())
        return write(app, *folder);
      return std::cout << page(name->empty() ? app : *app.get_subcommand(*name)), 0;
    };
  });
}
