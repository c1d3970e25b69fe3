//===- Report.h - What the driver says ------------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_REPORT_H
#define K2C_LIB_EMULATEDDRIVER_REPORT_H

#include <string>

namespace k2c::emulated {

class Driver;

/// A line on stderr.
void say(const std::string &line);

/// When the process ends: writes the file of K2C_EMULATED_CALLS, and says what is still alive.
class ReportAtExit {
public:
  explicit ReportAtExit(Driver &driver) : driver(driver) {}
  ~ReportAtExit();

private:
  Driver &driver;
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_REPORT_H
