// `run serve`: named, so that it is refused by name and not as an unknown command.
#include "run/Commands.h"
#include <memory>

namespace k2c::runtime {

void addServe(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *serve = app.add_subcommand("serve", "OpenAI-compatible HTTP (not in this build)");
  serve->allow_extras();
  serve->callback([&command] {
    command = []() -> Status {
      return Error{K2RT_UNSUPPORTED, "serve", "HTTP serving is not in this build", "use generate --batch-file"};
    };
  });
}

} // namespace k2c::runtime
