//===- Completion.cpp - k2c completion: what may come next ----------------===//
//
// A shell's script asks `k2c complete -- WORD...`, so that subcommands, options and their values are those of the
// command line's own declarations, and names are those of this build and this cache. No answer: the shell's file names.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Pipelines/Cache.h"
#include <algorithm>
#include <iostream>
#include <map>

using namespace k2c;

namespace {

using Names = std::vector<std::string>;

const std::map<std::string, const char *> scripts = {
    {"bash", "_k2c() {\n"
             "  mapfile -t COMPREPLY < <(\"$1\" complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
             "}\n"
             "complete -o default -F _k2c k2c\n"},
    {"fish", "complete -c k2c -a '(k2c complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n"},
    {"zsh", "#compdef k2c\n"
            "_k2c() {\n"
            "  local -a found=(\"${(@f)$(\"$words[1]\" complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
            "  [[ -n $found ]] && compadd -a found || _files\n"
            "}\n"
            "[[ $funcstack[1] = _k2c ]] && _k2c || compdef _k2c k2c\n"}};

Names topologies() {
  Names names;
  for (const TopologyName &topology : knownTopologies())
    names.push_back(topology.name);
  return names;
}

Names cached() {
  Names names = {"all"};
  if (Expected<CacheListing> listing = listCache())
    for (const CacheEntry &entry : listing->entries)
      names.push_back(entry.name);
  return names;
}

/// What an option or argument takes: the values that its type lists, {f32,bf16}, or names that are known.
Names valuesOf(const CLI::App &command, const CLI::Option &option) {
  const std::string name = option.get_name(), type = option.get_type_name();
  if (name == "--topology" || name == "--like" || name == "topology")
    return topologies();
  if (name == "SOURCE" && command.get_name() == "plan")
    return publishedModels();
  if (name == "--remove")
    return cached();
  const size_t open = type.find('{'), close = type.find('}', open);
  return open == type.npos || close == type.npos ? Names()
                                                 : CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

/// Makes an option and its value two words. Returns "--topology=" where a shell has both in the last word, and wants
/// candidates for all of it: bash takes --topology=x apart.
std::string takeApart(Names &words) {
  if (words.empty())
    return "";
  if (words.back() == "=")
    words.back() = "";
  words.erase(std::remove(words.begin(), words.end(), "="), words.end());
  const size_t equals = words.back().find('=');
  if (words.back().rfind("--", 0) != 0 || equals == std::string::npos)
    return "";
  const std::string word = words.back();
  words.back() = word.substr(0, equals);
  words.push_back(word.substr(equals + 1));
  return word.substr(0, equals + 1);
}

/// The candidates for the last of `words`, which are those of a command line behind its program.
Names complete(const CLI::App &app, Names words) {
  const std::string whole = takeApart(words), last = words.empty() ? "" : words.back();
  const CLI::App *command = &app;
  const CLI::Option *open = nullptr; // its value comes next
  size_t arguments = 0;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const auto chosen = command->get_subcommands([&](const CLI::App *each) { return each->get_name() == words[i]; });
    if (words[i] == "--")
      return {};
    if (open)
      open = nullptr;
    else if (words[i][0] == '-')
      open = command->get_option_no_throw(words[i]);
    else if (!chosen.empty())
      command = chosen.front();
    else
      ++arguments;
    if (open && open->get_items_expected_max() == 0)
      open = nullptr;
  }
  Names all;
  if (open)
    all = valuesOf(*command, *open);
  else if (last.rfind("-", 0) == 0)
    for (const CLI::Option *option : command->get_options())
      for (const std::string &name : option->get_lnames())
        all.push_back("--" + name);
  else if (command == &app)
    for (const CLI::App *each : app.get_subcommands([](const CLI::App *each) { return !each->get_group().empty(); }))
      all.push_back(each->get_name());
  else
    for (const CLI::Option *option : command->get_options())
      if (option->get_positional() && arguments-- == 0)
        all = valuesOf(*command, *option);
  all.erase(std::remove_if(all.begin(), all.end(), [&](const std::string &name) { return name.rfind(last, 0) != 0; }),
            all.end());
  for (std::string &name : all)
    name = whole + name;
  return all;
}

} // namespace

void k2c::addCompletion(CLI::App &app, std::function<int()> &run) {
  auto shell = std::make_shared<std::string>();
  CLI::App *c = app.add_subcommand("completion", "A shell's script that completes commands, options and names");
  c->footer("examples:\n  k2c completion bash > ~/.local/share/bash-completion/completions/k2c\n"
            "  k2c completion fish > ~/.config/fish/completions/k2c.fish\n  source <(k2c completion zsh)");
  c->add_option("SHELL", *shell, "the shell")->required()->check(CLI::IsMember({"bash", "fish", "zsh"}));
  c->callback([shell, &run] { run = [shell] { return std::cout << scripts.at(*shell), 0; }; });

  auto words = std::make_shared<Names>();
  CLI::App *hidden = app.add_subcommand("complete", "What may take the place of the last word")->group("");
  hidden->footer("example:\n  k2c complete -- compile --comp");
  hidden->add_option("ARGS", *words, "after --: the words behind k2c");
  hidden->callback([words, &app, &run] {
    run = [words, &app] {
      for (const std::string &name : complete(app, *words))
        std::cout << name << "\n";
      return 0;
    };
  });
}
