// Sites with a quota are received into room for the quota of each member, so that nobody has to ask for counts: the
// headers of the exchange bring them.
#include "device/cpu/Collectives.h"
#include "engine/StepRows.h"

namespace k2c::runtime {

static_assert(static_cast<int32_t>(Op::allToAllRows) == K2RT_ALL_TO_ALL_ROWS);
static_assert(static_cast<int32_t>(Op::send) == K2RT_SEND && static_cast<int32_t>(Op::receive) == K2RT_RECEIVE);
static_assert(static_cast<int32_t>(Axis::tp) == K2RT_AXIS_TP);
static_assert(static_cast<int32_t>(Axis::etp) == K2RT_AXIS_ETP);
static_assert(static_cast<int32_t>(Axis::ep) == K2RT_AXIS_EP);
static_assert(static_cast<int32_t>(Axis::pp) == K2RT_AXIS_PP);
static_assert(static_cast<int32_t>(Axis::node) == K2RT_AXIS_NODE);
static_assert(static_cast<int32_t>(Axis::rail) == K2RT_AXIS_RAIL);
static_assert(static_cast<int32_t>(Axis::stage) == K2RT_AXIS_STAGE);

Collectives::Collectives(const k2rt_ir_program &program, Exchange *exchange)
    : program(program), exchange(exchange), arrivedSteps(2 * static_cast<size_t>(program.n_collectives)),
      pending(2 * static_cast<size_t>(program.n_collectives)) {}

/// To the next stage, or from the one before: the first one receives nothing, and the last one sends nothing. A message
/// has the name of the site where it is received.
void Collectives::startStage(Half half, int32_t site, int64_t number, int64_t rows, void *buffer) {
  const k2rt_ir_collective &facts = siteOf(site);
  const Group stages = exchange->group(Axis::pp);
  const bool sends = facts.op == K2RT_SEND;
  const int32_t peer = stages.self + (sends ? 1 : -1);
  Pending &own = pending[indexOf(half, site)];
  if (peer < 0 || peer >= stages.size) {
    own = {RequestId(-1)};
    return;
  }
  Collective collective{sends ? Op::send : Op::receive, Axis::pp, static_cast<uint32_t>(facts.to), -1, number};
  collective.source = collective.result = buffer;
  collective.bytes = rows * facts.row_bytes;
  collective.rowBytes = facts.row_bytes;
  collective.peer = peer;
  collective.deadlines = stages.size;
  own = {exchange->start(collective)};
}

/// Rows of slices are known from the step. Gathered, each is where it is in the step; scattered, what each member has
/// of the own slice comes to a buffer of its own, and offsets between buffers are no whole rows: these are counted in
/// elements.
void Collectives::startSlices(Half half, Collective &collective, const k2rt_ir_step &step, void *const *buffers) {
  const k2rt_ir_collective &facts = siteOf(static_cast<int32_t>(collective.site));
  const bool gathers = facts.op == K2RT_GATHER_SLICES;
  const int64_t rows = static_cast<const k2rt_ir_step *>(step.gathered)->token_rows;
  const int64_t unit = gathers ? facts.row_bytes : static_cast<int64_t>(sizeof(float)), units = facts.row_bytes / unit;
  const int32_t members = exchange->group(Axis::tp).size;
  Pending &own = pending[indexOf(half, static_cast<int32_t>(collective.site))];
  own.counts.assign(4 * static_cast<size_t>(members), 0);
  int64_t *sent = own.counts.data(), *sentOffsets = sent + members, *received = sentOffsets + members,
          *receivedOffsets = received + members;
  for (int32_t member = 0; member < members; ++member) {
    const RowRange slice = sliceOf(rows, member, members);
    sent[member] = (gathers ? step.token_rows : slice.rows()) * units;
    sentOffsets[member] = gathers ? 0 : slice.begin * units;
    received[member] = (gathers ? slice.rows() : step.token_rows) * units;
    receivedOffsets[member] =
        gathers ? slice.begin
                : (static_cast<const char *>(buffers[1 + member]) - static_cast<const char *>(buffers[1])) / unit;
  }
  collective.source = buffers[0];
  collective.result = buffers[1];
  collective.bytes = unit;
  collective.rowBytes = facts.row_bytes;
  collective.rows = {sent, sentOffsets, received, receivedOffsets, /*isCapacity=*/false};
  own.request = exchange->start(collective);
}

void Collectives::start(Half half, int32_t site, int64_t layer, int64_t number, const k2rt_ir_step &step,
                        void *const *buffers) {
  const k2rt_ir_collective &facts = siteOf(site);
  if (facts.op == K2RT_SEND || facts.op == K2RT_RECEIVE)
    return startStage(half, site, number, step.token_rows, buffers[0]);
  const auto axis = static_cast<Axis>(facts.axis);
  Collective collective{Op::allToAllRows, axis, static_cast<uint32_t>(site), static_cast<int32_t>(layer), number};
  if (axis == Axis::tp)
    return startSlices(half, collective, step, buffers);
  const int32_t members = exchange->group(axis).size;
  const auto *outgoing = static_cast<const int64_t *>(buffers[1]);
  auto *incoming = static_cast<int64_t *>(buffers[3]);
  if (facts.quota > 0)
    for (int32_t member = 0; member < members; ++member) {
      incoming[member] = facts.quota;
      incoming[members + member] = member * facts.quota;
    }
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
