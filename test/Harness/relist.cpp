// k2c-relist BUNDLE FILE..: files.json with what these files of the bundle are now, so that a test can change one and
// see what reads it, not the hash, refuse it.
#include "k2c/Weights/BundleFiles.h"
#include <cstdio>

int main(int argc, char **argv) {
  const std::vector<std::string> names(argv + 2, argv + argc);
  const k2c::Status done = k2c::updateBundleFiles(argv[1], names);
  if (!done)
    std::fprintf(stderr, "k2c-relist: %s\n", done.error().text().c_str());
  return done ? 0 : 1;
}
