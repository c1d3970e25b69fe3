//===- ServingModel.h - Cost model of a serving layout --------------------===//
//
// One pool: prompts and generated tokens share the devices. With R prompt tokens/s and a decode step of D seconds for B
// sequences, a request of C computed and O generated tokens takes C / R + O D / (B E) of its time (E tokens of a
// sequence a step), which bounds the requests/s; between two tokens of a sequence lies a step and its share of prefill.
//
// Two pools (paper 004, section 2.6: prefill-decode disaggregation): one takes C / R, the other O D / (B E), and the
// slower bounds the requests/s; no prefill comes between two tokens, but a request's cache moves from the one to the
// other. Prompts wait in a queue, so their pool is never more than 95 % busy, less where a target of the first token
// says so.
//
// A pool alone is one of the two, bounded by itself: what only the other one does has no figure, and nothing is said of
// the cache's way between them.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_SERVINGMODEL_H
#define K2C_LIB_PLANNER_CLUSTER_SERVINGMODEL_H

#include "ServePool.h"

namespace k2c::planner {

/// The largest utilisation at which a queue of prompts, or a pool with arrivals, is planned.
inline constexpr double maxBusy = 0.95;

/// Mean wait of a queue with one server of fixed service time that is busy a share of the time (M/D/1).
double waitingSeconds(double busy, double service);
/// The utilisation at which the mean wait of that queue is `seconds`.
double busyAtWait(double seconds, double service);

/// The service that users get when each data-parallel rank holds `sequences`; `requests` is of the whole cluster. What
/// no pool does takes 0 seconds.
struct Service {
  int64_t sequences = 0;
  double decode = 0;   ///< seconds of a decode step
  double requests = 0; ///< a second
  double load = 1;     ///< of the time, that is used; above 1: arrivals exceed what is served
  double firstToken = 0, slowFirstToken = 0, perToken = 0;
  double promptBusy = 0, tokenBusy = 0; ///< shares of the time, of two pools
};

/// The cost model of a serving layout, of one pool of devices, of two, or of one of these two.
class ServingModel {
public:
  /// `layout` must pass checkLayout and, for each pool, asReplicas.
  ServingModel(const RequestModel &context, const ParallelLayout &layout);

  /// Chooses the sequences of a rank: as many as the workload asks for, as its arrivals keep busy, or as memory and
  /// latency targets allow.
  Expected<Service> choose() const;
  Service at(int64_t sequences) const;
  ClusterPlan plan(const Service &service) const;
  bool meets(const Service &service) const;
  Error missed(const Service &service) const;

private:
  /// Null where prompts are not computed, or tokens not generated.
  const ServePool *prompts() const { return separate ? &*separate : own.role == PoolRole::Decode ? nullptr : &own; }
  const ServePool *tokens() const { return own.role == PoolRole::Prefill ? nullptr : &own; }
  /// Whether prompts and generated tokens take turns on the same devices.
  bool shares() const { return own.role == PoolRole::Both; }
  double promptSeconds() const { return prompts() ? prompts()->promptSeconds() : 0; }
  double maxRequests(double tokenSeconds) const;
  double firstTokenSeconds(bool slow, const Service &service) const;
  Expected<Service> chooseForArrivals(int64_t most) const;
  void addSteps(ClusterPlan &plan, const char *phase, const StepTime &step) const;
  void addTransfer(ClusterPlan &plan) const;
  void addFigures(ClusterPlan &plan, const Service &service) const;
  void addPoolFigures(ClusterPlan &plan) const;
  void addDollars(ClusterPlan &plan, const Service &service) const;
  void addNotes(ClusterPlan &plan, const Service &service) const;
  void addPoolNotes(ClusterPlan &plan, const Service &service) const;
  std::string overlapNote(const ServePool &pool, const char *phase, const StepLoad &load) const;
  double targetShare(const std::optional<Seconds> &target, double value) const {
    return target ? value / target->value : 0;
  }

  const RequestModel &context;
  const ServeWorkload &workload;
  const RequestMix &mix;
  ParallelLayout layout;                   ///< of both pools, steps chosen
  const ServePool own;                     ///< of the keys without prefill.
  std::optional<const ServePool> separate; ///< that computes prompts
  Handover handover, slowHandover;         ///< between two pools: of the mean input, of 95 %
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_SERVINGMODEL_H
