//===- Run.cpp - k2c run: compile once into a cache folder, then run ------===//
#include "Commands.h"
#include "base/Utf8.h"
#include "k2c/Pipelines/Cache.h"
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/prctl.h>
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

/// For Option::check: a number from 0 to 1e6, which the program takes as a temperature.
CLI::Validator temperature() {
  return CLI::Validator(
      [](const std::string &text) {
        double value = -1;
        const char *const end = text.data() + text.size();
        const auto [next, problem] = std::from_chars(text.data(), end, value);
        const bool isOne = problem == std::errc() && next == end && value >= 0 && value <= 1e6;
        return isOne ? std::string() : "'" + shortened(text) + "' is not a number from 0 to 1e6";
      },
      "0 to 1e6");
}

int leaveWith(const Error &error) { return fail(error); }

/// Where the cache keeps no bundle: compiles into a temporary folder and runs the program there, both in a child, so
/// that this process removes the folder however the child ends. Signals that end a process are the child's; those of
/// the terminal reach it by themselves.
int runOnce(CompileOptions options, const std::vector<std::string> &arguments, const std::string &why) {
  sigset_t ending, before;
  sigemptyset(&ending);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    sigaddset(&ending, signal);
  std::signal(SIGCHLD, SIG_DFL); // it may have been inherited as ignored
  sigprocmask(SIG_BLOCK, &ending, &before);
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "k2c-run-XXXXXX").string();
  if (error || !mkdtemp(folder.data()))
    return leaveWith({folder, std::string("cannot be created: ") + std::strerror(error ? error.value() : errno),
                      "set TMPDIR to a folder where you may write, or use k2c compile"});
  if (options.note)
    options.note(why + "; the compiled model is removed after this run (set XDG_CACHE_HOME to a folder where you may "
                       "write, or use k2c compile)");
  setInterruptNote("nothing is kept");
  options.output = folder + "/bundle";
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    const Status status = compile(options);
    eraseBar();
    std::fflush(nullptr);
    _exit(status ? execute(options.output, arguments) : leaveWith(status.error()));
  }
  const int refusal = child < 0 ? errno : 0;
  int status = 0;
  for (siginfo_t signal; child > 0 && waitpid(child, &status, WNOHANG) == 0;)
    if (sigwaitinfo(&ending, &signal) > 0 && signal.si_signo != SIGCHLD && signal.si_code != SI_KERNEL)
      kill(child, signal.si_signo);
  std::filesystem::remove_all(folder, error);
  if (child < 0)
    return fail("k2c run: " + std::string(std::strerror(refusal)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

void k2c::addRun(CLI::App &app, std::function<int()> &run) {
  struct Flags {
    CompileOptions compile;
    int64_t context = 0;
    std::optional<std::string> prompt, tokens, temperature;
    bool json = false;
    std::vector<std::string> rest;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *c = app.add_subcommand("run", "Compile into a cache folder once, then generate");
  c->footer("examples:\n  k2c run models/bundled --prompt \"In the beginning\" -n 40\n"
            "  k2c run models/bundled --compute bf16 -- logits --prompt-ids 1,2,3 --json\n"
            "  k2c run int4/model.onnx --widen --prompt \"In the beginning\"\n"
            "k2c cache lists what was kept, and removes it.");
  c->add_option("SOURCE", flags->compile.source, "checkpoint folder, .onnx file or its folder")->required();
  addCompute(*c, flags->compile.compute);
  addWiden(*c, flags->compile.widen);
  addNarrow(*c, flags->compile.narrow);
  c->add_option("--max-context", flags->context, "most tokens of a sequence")->transform(whole(1, 1 << 24));
  c->add_option("--prompt", flags->prompt, "text to continue");
  c->add_option("-n", flags->tokens, "new tokens (default: the program's)")->transform(whole(1, 1 << 24));
  c->add_option("--temperature", flags->temperature, "0: the most likely token (default)")->check(temperature());
  c->add_flag("--json", flags->json, "print JSON");
  std::shared_ptr<Console> console = addConsole(*c);
  c->add_option("ARGS", flags->rest, "after --: a command of the program and its flags");
  c->callback([flags, console, &run] {
    run = [flags, console] {
      CompileOptions &options = flags->compile;
      if (flags->context > 0)
        options.maxContext = flags->context;
      options.progress = console->bar();
      options.note = console->note();
      setInterruptNote("finished weights wait in the cache for the same command");
      Expected<CachedBundle> bundle = compileCached(options);
      eraseBar();
      if (!bundle)
        return fail(bundle.error());
      std::vector<std::string> arguments = flags->rest;
      if (arguments.empty())
        arguments = {"generate"};
      for (const auto &[flag, value] : {std::pair("--prompt", flags->prompt), std::pair("-n", flags->tokens),
                                        std::pair("--temperature", flags->temperature)})
        if (value)
          arguments.insert(arguments.end(), {flag, *value});
      if (flags->json)
        arguments.push_back("--json");
      return bundle->folder.empty() ? runOnce(options, arguments, bundle->refusal) : execute(bundle->folder, arguments);
    };
  });
}
