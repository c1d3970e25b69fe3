// Names and the comparison of headers: the field that explains most comes first.
#include "exchange/Header.h"
#include "base/Hash.h"
#include <string>

namespace k2c::runtime {

const char *nameOf(Op op) {
  static constexpr const char *names[opCount] = {
      "all_reduce_max", "all_reduce_sum", "reduce_scatter_sum", "all_gather",   "broadcast",  "send", "receive",
      "all_to_all",     "counts",         "all_to_all_rows",    "scatter_rows", "gather_rows"};
  return names[static_cast<int32_t>(op)];
}

std::string placeOf(const Collective &collective) {
  return "site " + std::to_string(collective.site) + " (" + nameOf(collective.op) +
         (collective.layer < 0 ? "" : ", layer " + std::to_string(collective.layer)) + ", group " +
         nameOf(collective.axis) + ", step " + std::to_string(collective.step) + ")";
}

Header headerOf(const Collective &collective, uint64_t program, int32_t round, int32_t rank, int64_t bytes) {
  const Op op = collective.op == Op::receive ? Op::send : collective.op;
  return {headerFormat,
          collective.site,
          program,
          collective.step,
          bytes,
          static_cast<uint8_t>(op),
          static_cast<uint8_t>(round),
          0,
          rank};
}

static std::string opText(uint8_t op) {
  return op < opCount ? nameOf(static_cast<Op>(op)) : "operation " + std::to_string(op);
}

Status checkHeader(const Header &header, const Header &own, bool isCapacity, const Collective &collective) {
  const std::string sender = "rank " + std::to_string(header.source);
  const auto differs = [&](std::string message, const char *remedy) {
    return Error{K2RT_PEER_FAILED, placeOf(collective), std::move(message), remedy};
  };
  if (header.format != own.format)
    return differs("a message begins with " + std::to_string(header.format) + ", not with " +
                       std::to_string(own.format),
                   "start the same build of k2c on every host");
  if (header.program != own.program)
    return differs(sender + " runs program " + hashText(header.program) + ", this rank " + hashText(own.program),
                   "start the same bundle on every host");
  constexpr const char *mistake = "the ranks took different paths through one program: report it with the bundle";
  if (header.site != own.site)
    return differs(sender + " is at site " + std::to_string(header.site) + ", this rank at site " +
                       std::to_string(own.site),
                   mistake);
  if (header.op != own.op || header.round != own.round)
    return differs(sender + " is in round " + std::to_string(header.round) + " of " + opText(header.op) +
                       ", this rank in round " + std::to_string(own.round) + " of " + opText(own.op),
                   mistake);
  if (header.step != own.step)
    return differs(sender + " is at step " + std::to_string(header.step) + ", this rank at step " +
                       std::to_string(own.step),
                   mistake);
  if (header.bytes < 0 || (isCapacity ? header.bytes > own.bytes : header.bytes != own.bytes))
    return differs(sender + " sends " + std::to_string(header.bytes) + " bytes, this rank expects " +
                       (isCapacity ? "at most " : "") + std::to_string(own.bytes),
                   mistake);
  return {};
}

} // namespace k2c::runtime
