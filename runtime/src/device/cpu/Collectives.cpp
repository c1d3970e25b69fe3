// Sites with a quota are received into room for the quota of each member, so that nobody has to ask for counts: the
// headers of the exchange bring them.
#include "device/cpu/Collectives.h"

namespace k2c::runtime {

static_assert(static_cast<int32_t>(Op::allToAllRows) == K2RT_ALL_TO_ALL_ROWS);
static_assert(static_cast<int32_t>(Op::send) == K2RT_SEND && static_cast<int32_t>(Op::receive) == K2RT_RECEIVE);
static_assert(static_cast<int32_t>(Axis::ep) == K2RT_AXIS_EP);
static_assert(static_cast<int32_t>(Axis::pp) == K2RT_AXIS_PP);
static_assert(static_cast<int32_t>(Axis::node) == K2RT_AXIS_NODE);
static_assert(static_cast<int32_t>(Axis::rail) == K2RT_AXIS_RAIL);

Collectives::Collectives(const k2rt_ir_program &program, Exchange *exchange)
    : program(program), exchange(exchange), arrivedSteps(2 * static_cast<size_t>(program.n_collectives)),
      pending(2 * static_cast<size_t>(program.n_collectives)) {}

/// To the next stage, or from the one before: the first one receives nothing, and the last one sends nothing. A message
/// has the name of the site where it is received.
void Collectives::startStage(Half half, int32_t site, int64_t step, int64_t rows, void *buffer) {
  const k2rt_ir_collective &facts = siteOf(site);
  const Group stages = exchange->group(Axis::pp);
  const bool sends = facts.op == K2RT_SEND;
  const int32_t peer = stages.self + (sends ? 1 : -1);
  Pending &own = pending[indexOf(half, site)];
  if (peer < 0 || peer >= stages.size) {
    own = {RequestId(-1), nullptr, 0};
    return;
  }
  Collective collective{sends ? Op::send : Op::receive, Axis::pp, static_cast<uint32_t>(facts.to), -1, step};
  collective.source = collective.result = buffer;
  collective.bytes = rows * facts.row_bytes;
  collective.rowBytes = facts.row_bytes;
  collective.peer = peer;
  collective.deadlines = stages.size;
  own = {exchange->start(collective), nullptr, 0};
}

void Collectives::start(Half half, int32_t site, int64_t layer, int64_t step, int64_t rows, void *const *buffers) {
  const k2rt_ir_collective &facts = siteOf(site);
  if (facts.op != K2RT_ALL_TO_ALL_ROWS)
    return startStage(half, site, step, rows, buffers[0]);
  const auto axis = static_cast<Axis>(facts.axis);
  const int32_t members = exchange->group(axis).size;
  const auto *outgoing = static_cast<const int64_t *>(buffers[1]);
  auto *incoming = static_cast<int64_t *>(buffers[3]);
  if (facts.quota > 0)
    for (int32_t member = 0; member < members; ++member) {
      incoming[member] = facts.quota;
      incoming[members + member] = member * facts.quota;
    }
  Collective collective{Op::allToAllRows, axis, static_cast<uint32_t>(site), static_cast<int32_t>(layer), step};
  collective.source = buffers[0];
  collective.result = buffers[2];
  collective.bytes = facts.row_bytes;
  collective.rows = {outgoing, outgoing + members, incoming, incoming + members, facts.quota > 0};
  pending[indexOf(half, site)] = {exchange->start(collective), incoming, members};
}

Status Collectives::wait(Half half, int32_t site) {
  Pending own = std::move(pending[indexOf(half, site)]);
  pending[indexOf(half, site)] = Pending();
  if (!own.request)
    return own.request.takeError();
  if (*own.request < 0) // nobody to exchange with
    return {};
  if (Status done = exchange->wait(*own.request); !done)
    return done;
  int64_t rows = 0;
  for (int32_t member = 0; member < own.members; ++member)
    rows += own.incoming[member];
  arrivedSteps[indexOf(half, site)].token_rows = rows;
  return {};
}

} // namespace k2c::runtime
