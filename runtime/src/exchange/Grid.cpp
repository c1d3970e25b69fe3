// Groups as arithmetic progressions.
#include "exchange/Grid.h"
#include <algorithm>
#include <string>

namespace k2c::runtime {

const char *nameOf(Axis axis) {
  static constexpr const char *names[axisCount] = {"world", "tp",      "dp",   "etp",  "ep",
                                                   "pp",    "replica", "node", "rail", "stage"};
  return names[static_cast<int32_t>(axis)];
}

Status Grid::check(int32_t started) const {
  if (std::min({tp, dp, etp, ep, pp, replicas, perNode}) < 1)
    return Error{"layout", "an axis has less than 1 rank", ""};
  if (stageRanks() != etp * ep)
    return Error{"layout",
                 "tp * dp are " + std::to_string(stageRanks()) + " ranks of a stage, etp * ep are " +
                     std::to_string(etp * ep),
                 "choose the same product for both"};
  if (stageRanks() % perNode != 0 && perNode % stageRanks() != 0)
    return Error{"layout",
                 std::to_string(perNode) + " ranks of a node and " + std::to_string(stageRanks()) +
                     " of a stage do not divide one another",
                 "choose a layout whose stages fill nodes"};
  if (std::min(perNode, stageRanks()) % etp != 0)
    return Error{"layout",
                 std::to_string(etp) + " ranks that have parts of an expert do not divide the " +
                     std::to_string(std::min(perNode, stageRanks())) + " of a stage on a node",
                 "choose an etp that does"};
  if (started != ranks())
    return Error{"layout",
                 std::to_string(started) + " ranks were started, the program is for " + std::to_string(ranks()),
                 "start as many as its topology has"};
  return {};
}

Group Grid::group(Axis axis, int32_t rank) const {
  const int32_t stage = stageRanks(), node = std::min(perNode, stage); // ranks
  const auto along = [&](int32_t stride, int32_t size) {
    const int32_t self = rank / stride % size;
    return Group{axis, rank - self * stride, stride, size, self};
  };
  switch (axis) {
  case Axis::tp:
    return along(1, tp);
  case Axis::dp:
    return along(tp, dp);
  case Axis::etp:
    return along(1, etp);
  case Axis::ep:
    return along(etp, ep);
  case Axis::pp:
    return along(stage, pp);
  case Axis::replica:
    return along(stage * pp, replicas);
  case Axis::node:
    return along(etp, node / etp);
  case Axis::rail:
    return along(node, stage / node);
  case Axis::stage:
    return along(1, stage);
  case Axis::world:
    break;
  }
  return along(1, ranks());
}

} // namespace k2c::runtime
