//===- Measurement.h - All probes with one team ---------------------------===//
#ifndef K2C_LIB_CALIBRATE_MEASUREMENT_H
#define K2C_LIB_CALIBRATE_MEASUREMENT_H

#include "Kernels.h"
#include <limits>

namespace k2c::calibration {

/// Times of the probes at their fastest over several rounds. On a machine that others use, and on a virtual one whose
/// processors move, minutes differ more than runs that follow one another: a round goes through everything once.
class Measurement {
public:
  Measurement(const std::vector<Probe> &probes, const Kernels &kernels, const Bench &bench, Team &team, Seconds budget)
      : probes(probes), kernels(kernels), bench(bench), team(team), budget(budget) {}

  /// `l2`: of a core. `step`: called after each probe.
  Status round(Bytes l2, const std::function<void()> &step);
  /// The rates, after at least one round.
  TeamRates rates() const;

private:
  /// Fastest launches, their barriers included.
  struct Timing {
    double work = 0;
    double whole = std::numeric_limits<double>::infinity();
    double less = 0; ///< what of it is not the work's; infinity before it is measured
  };
  struct ProbeTimings {
    std::vector<Timing> near, memory; ///< for each of the probe's rows
  };

  Status time(const Trial &trial, Timing &timing);
  Status measure(const Probe &probe, ProbeTimings &timings);
  Status measureEmpty(Seconds budget);
  Status measureChain();
  Status measureReading(Bytes l2);
  double rate(const Timing &timing) const;
  Seconds launch() const;

  const std::vector<Probe> &probes;
  const Kernels &kernels;
  const Bench &bench;
  Team &team;
  Seconds budget;
  double empty = std::numeric_limits<double>::infinity(); ///< a launch without work, after others like it
  double chain = std::numeric_limits<double>::infinity(); ///< mean of the chain's launches
  std::vector<size_t> chained;                            ///< probes that the chain launches
  std::vector<std::pair<Bytes, Timing>> reading;
  std::vector<ProbeTimings> timings;
};

/// Four digits: what repeats.
double rounded(double value);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_MEASUREMENT_H
