//===- TouchAttr.cpp - Effects of kernels in the IR and in plain C++ ------===//
#include "k2c/Kernels/TouchAttr.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace k2c {

static constexpr std::pair<Capture, rt::Touch> captures[] = {{Capture::Hidden, rt::Touch::Hidden},
                                                             {Capture::Experts, rt::Touch::Experts},
                                                             {Capture::Weights, rt::Touch::Weights},
                                                             {Capture::MaxLogit, rt::Touch::MaxLogit},
                                                             {Capture::Samples, rt::Touch::Samples}};

static StringAttr touchAttr(MLIRContext *context, const Effect &effect) {
  auto touch = rt::Touch::None;
  auto add = [&](bool isSo, rt::Touch bit) {
    if (isSo)
      touch = touch | bit;
  };
  add(effect.isRead(), rt::Touch::Reads);
  add(effect.isWritten(), rt::Touch::Writes);
  add(effect.isByRow(), rt::Touch::ByRow);
  add(effect.isInAnyOrder(), rt::Touch::InAnyOrder);
  add(effect.rows() == FormFilter::Expanded, rt::Touch::Expanded);
  add(effect.rows() == FormFilter::Absorbed, rt::Touch::Absorbed);
  for (auto [capture, bit] : captures)
    for (Capture captured : effect.captured())
      add(captured == capture, bit);
  return StringAttr::get(context, rt::stringifyTouch(touch));
}

ArrayAttr touchesAttr(MLIRContext *context, const KernelDesc &desc, const TileConfig &tile) {
  SmallVector<Attribute> touches;
  for (const Operand &operand : operands(desc))
    touches.push_back(touchAttr(context, operand.effect));
  if (tile.splitTokens > 0) { // its partials, and which of its two launches it is
    touches.push_back(touchAttr(context, Effect::destroys()));
    touches.push_back(touchAttr(context, Effect::none()));
  }
  return ArrayAttr::get(context, touches);
}

Effect effectOf(Attribute attr) {
  const rt::Touch touch = *rt::symbolizeTouch(cast<StringAttr>(attr).getValue());
  auto has = [&](rt::Touch bit) { return rt::bitEnumContainsAll(touch, bit); };
  std::vector<Capture> into;
  for (auto [capture, bit] : captures)
    if (has(bit))
      into.push_back(capture);
  const FormFilter rows = has(rt::Touch::Expanded)   ? FormFilter::Expanded
                          : has(rt::Touch::Absorbed) ? FormFilter::Absorbed
                                                     : FormFilter::All;
  Effect effect = !into.empty()                                      ? Effect::captures(into)
                  : has(rt::Touch::Writes) && !has(rt::Touch::Reads) ? Effect::writes(rows)
                  : has(rt::Touch::Writes)                           ? Effect::destroys()
                  : has(rt::Touch::Reads)                            ? Effect::reads()
                                                                     : Effect::none();
  if (has(rt::Touch::ByRow))
    effect = effect.byRow();
  return has(rt::Touch::InAnyOrder) ? effect.inAnyOrder() : effect;
}

} // namespace k2c
