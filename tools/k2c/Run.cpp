//===- Run.cpp - k2c run: compile once into a cache folder, then run ------===//
#include "Commands.h"
#include "k2c/Pipelines/Compile.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using namespace k2c;

namespace {

/// Replaces this process by the bundle's program.
int execute(const std::string &bundle, std::vector<std::string> arguments) {
  std::string program = bundle + "/run";
  std::vector<char *> argv{program.data()};
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return fail(program + ": " + std::strerror(errno));
}

/// Runs the program beside this process, which removes the bundle when it has ended. An interrupt is the program's.
int executeOnce(const CachedBundle &bundle, const std::vector<std::string> &arguments) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    _exit(execute(bundle.folder, arguments));
  }
  const int refusal = child < 0 ? errno : 0;
  std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  std::error_code ignored;
  std::filesystem::remove_all(bundle.temporary, ignored);
  if (child < 0)
    return fail(bundle.folder + "/run: " + std::strerror(refusal));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

void k2c::addRun(CLI::App &app, std::function<int()> &run) {
  auto source = std::make_shared<std::string>();
  auto prompt = std::make_shared<std::optional<std::string>>();
  auto rest = std::make_shared<std::vector<std::string>>();
  CLI::App *c = app.add_subcommand("run", "Compile into a cache folder once, then generate");
  c->footer("examples:\n  k2c run models/bundled --prompt \"In the beginning\"\n"
            "  k2c run models/bundled -- logits --prompt-ids 1,2,3 --json");
  c->add_option("SOURCE", *source, "checkpoint folder")->required();
  c->add_option("--prompt", *prompt, "text to continue");
  c->add_option("ARGS", *rest, "after --: a command of the program and its flags");
  c->callback([=, &run] {
    run = [=] {
      CompileOptions options;
      options.source = *source;
      options.progress = progressBar();
      options.note = printNote;
      Expected<CachedBundle> bundle = compileCached(std::move(options));
      if (!bundle)
        return fail(bundle.error().text());
      std::vector<std::string> arguments = *rest;
      if (arguments.empty())
        arguments = {"generate"};
      if (*prompt)
        arguments.insert(arguments.end(), {"--prompt", **prompt});
      return bundle->temporary.empty() ? execute(bundle->folder, arguments) : executeOnce(*bundle, arguments);
    };
  });
}
