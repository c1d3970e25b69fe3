//===- Access.cpp - How a kernel touches its arguments ------------------------===//
#include "k2c/Kernels/Access.h"
#include <type_traits>

namespace k2c {

namespace {

template <class Desc, class... Descs> constexpr bool isOneOf = (std::is_same_v<Desc, Descs> || ...);

/// Whether item i of the kernel takes row i of the activation or result `name`, and no other row.
bool isByRow(const KernelDesc &desc, const std::string &name) {
  return std::visit(
      [&](const auto &body) {
        using Desc = std::decay_t<decltype(body)>;
        if (isOneOf<Desc, RmsNormDesc, RotaryDesc, AppendDesc, SelectDesc, AddDesc, ClipDesc, GatedActDesc,
                    ObserveDesc>)
          return true;
        if (isOneOf<Desc, EmbedDesc, WantRowsDesc>)
          return name == "y";
        if (isOneOf<Desc, GatherDesc>)
          return name == "x";
        if (isOneOf<Desc, CombineDesc>)
          return name == "experts" || name == "y";
        return false;
      },
      desc.body);
}

} // namespace

std::vector<Access> accesses(const KernelDesc &desc) {
  std::vector<Access> list;
  bool appends = std::holds_alternative<AppendDesc>(desc.body),
       combines = std::holds_alternative<CombineDesc>(desc.body);
  for (const Operand &operand : operands(desc)) {
    bool isResult = operand.role == Operand::Role::Result;
    bool isRows = isResult || operand.role == Operand::Role::Activation;
    bool isWritten = (appends && operand.role == Operand::Role::Plane) || (combines && operand.name == "x");
    list.push_back({isResult || isWritten, isRows && isByRow(desc, operand.name)});
  }
  return list;
}

FormFilter writtenRows(const KernelDesc &desc) {
  return std::visit(
      [](const auto &body) {
        using Desc = std::decay_t<decltype(body)>;
        if constexpr (isOneOf<Desc, HeadLinearDesc, AbsorbedAttentionDesc, ExpandedAttentionDesc>)
          return body.rows;
        else
          return FormFilter::All;
      },
      desc.body);
}

} // namespace k2c
