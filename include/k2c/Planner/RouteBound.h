//===- RouteBound.h - Binding the experts of a token to few nodes -------------===//
//
// `--route-limit` and `--locality-penalty` change which experts a token gets, by where these are. A bound must leave
// every token its experts, whatever its choices are: what does not is refused at compile.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_ROUTEBOUND_H
#define K2C_PLANNER_ROUTEBOUND_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include "k2rt/ExpertNodes.h"

namespace k2c {

struct RouteBound {
  int64_t limit = 0;  ///< nodes that a token's experts are on, in a layer; 0: any
  double penalty = 0; ///< by which choices of experts fall that the token's home node has not

  bool isBound() const { return limit > 0 || penalty > 0; }
};

/// Whether there are others than the nodes that `asked` binds tokens to, where the experts of a layer are on `nodes` of
/// the topology's nodes. Errors: a model without experts; one node; a limit of all nodes or more.
Status checkBinds(const ModelSpec &spec, const Topology &topology, int64_t nodes, const RouteBound &asked);

/// And whether a program can have it whose experts are on `nodes`. Errors besides: fewer experts on `limit` nodes than
/// a token takes, with the smallest limit that does; more choices of groups than are looked at; under a limit, an
/// expert on several nodes.
Status checkRouteBound(const ModelSpec &spec, const Topology &topology, const ExpertNodes &nodes,
                       const RouteBound &asked);

} // namespace k2c

#endif // K2C_PLANNER_ROUTEBOUND_H
