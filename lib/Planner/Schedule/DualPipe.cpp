//===- DualPipe.cpp - DualPipe and DualPipeV ----------------------------------===//
//
// Every rank holds two stages and runs two phases of micro-batches against each other, so that the forward of one hides
// the communication of the other's backward. In DualPipe the phases enter at the two ends of the ranks; the ranks of
// the second half mirror the first. In DualPipeV the second phase is the second half of the same model, folded back.
// Both run the same eight steps over the distance to the middle, where the phases meet first (DeepSeek-AI, DualPipe
// README and its step()).
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include <deque>

using namespace k2c;

namespace {

/// One rank's eight steps. Each kind of work and of transfer counts its own micro-batches.
class DualPipeRank {
public:
  DualPipeRank(const PipelineShape &shape, int32_t rank, planner::RankWriter &out) : out(out) {
    auto pp = static_cast<int32_t>(shape.pp), count = static_cast<int32_t>(shape.microbatches);
    bool isV = shape.kind == PipelineKind::DualPipeV;
    isMirrored = !isV && rank >= pp / 2;
    depth = isMirrored ? pp - 1 - rank : rank;
    toMiddle = (isV ? pp : pp / 2) - depth - 1;
    pairs = (isV ? count - 2 * pp : count / 2 - pp) + depth + 1;
    // In the V, the end of the first leg hands over to the second on the same rank.
    sendsFirst = !isV;
  }

  void write() {
    fill();
    for (int32_t i = 0; i < pairs; ++i)
      overlap(i == 0);
    drain();
  }

private:
  bool isMiddle() const { return toMiddle == 0; }

  /// Steps 1 to 3: nF0, nF0F1, nB1W1F1.
  void fill() {
    for (int32_t i = 0; i < 2 * toMiddle; ++i)
      forward(0);
    receiveForward(0);
    for (int32_t i = 0; i < depth + 1; ++i) {
      forward(0, false, isMiddle() && sendsFirst);
      receiveForward(0);
      forward(1, true, !isMiddle() || i < depth);
      if (!isMiddle() || !sendsFirst)
        sendForward(0);
    }
    for (int32_t i = 0; i < toMiddle; ++i) {
      backward(1, PipelineWork::InputGrad);
      receiveForward(1);
      weight();
      forward(1, false);
    }
  }

  /// Step 4: nF0B1F1B0. In the middle the first two run apart: overlapping them would lengthen the bubble.
  void overlap(bool isFirst) {
    if (isFirst && isMiddle()) {
      forward(0, false, false);
      sendForward(1);
      backward(1, PipelineWork::Backward, false);
      sendForward(0);
      sendBackward(1);
    } else {
      forwardBackward(0, 1, !isFirst);
    }
    forwardBackward(1, 0);
  }

  /// Steps 5 to 8: nB1F1B0, nB1B0 (the second half with deferred weight gradients), nWB0, nW.
  void drain() {
    for (int32_t i = 0; i < toMiddle; ++i) {
      backward(1);
      forwardBackward(1, 0);
    }
    for (int32_t i = 0; i < depth + 1; ++i) {
      // 2i and 2i+1 count the backwards of this step; the first depth+1 of them are full.
      backward(1, 2 * i < depth + 1 ? PipelineWork::Backward : PipelineWork::InputGrad);
      backward(0, 2 * i + 1 < depth + 1 ? PipelineWork::Backward : PipelineWork::InputGrad);
    }
    for (int32_t i = 0; i < toMiddle; ++i) {
      weight();
      backward(0, PipelineWork::InputGrad);
    }
    for (int32_t i = 0; i < depth + 1; ++i)
      weight();
  }

  int32_t lane(int32_t phase) const { return isMirrored ? 1 - phase : phase; }
  void receiveForward(int32_t phase) { out.receiveForward(lane(phase), received[phase]++); }
  void sendForward(int32_t phase) { out.sendForward(lane(phase), sent[phase]++); }
  void receiveBackward(int32_t phase) { out.receiveBackward(lane(phase), receivedBack[phase]++); }
  void sendBackward(int32_t phase) { out.sendBackward(lane(phase), sentBack[phase]++); }

  void forward(int32_t phase, bool receives = true, bool sends = true) {
    if (receives)
      receiveForward(phase);
    out.wait();
    out.compute(PipelineWork::Forward, lane(phase), forwards[phase]++);
    if (sends)
      sendForward(phase);
  }

  void backward(int32_t phase, PipelineWork work = PipelineWork::Backward, bool sends = true) {
    receiveBackward(phase);
    out.wait();
    if (work == PipelineWork::InputGrad)
      deferred.push_back({PipelineWork::WeightGrad, lane(phase), backwards[phase]});
    out.compute(work, lane(phase), backwards[phase]++);
    if (sends)
      sendBackward(phase);
  }

  void forwardBackward(int32_t forwardPhase, int32_t backwardPhase, bool receives = true) {
    if (receives)
      receiveForward(forwardPhase);
    receiveBackward(backwardPhase);
    out.wait();
    out.pair({PipelineWork::Forward, lane(forwardPhase), forwards[forwardPhase]++},
             {PipelineWork::Backward, lane(backwardPhase), backwards[backwardPhase]++});
    sendForward(forwardPhase);
    sendBackward(backwardPhase);
  }

  void weight() {
    out.wait();
    out.compute(PipelineWork::WeightGrad, deferred.front().lane, deferred.front().microbatch);
    deferred.pop_front();
  }

  planner::RankWriter &out;
  bool isMirrored, sendsFirst;
  int32_t depth, toMiddle, pairs;
  int32_t forwards[2] = {}, backwards[2] = {}, received[2] = {}, sent[2] = {}, receivedBack[2] = {}, sentBack[2] = {};
  std::deque<PipelineTask> deferred;
};

} // namespace

void planner::writeDualPipe(const PipelineShape &shape, int32_t rank, RankWriter &out) {
  DualPipeRank(shape, rank, out).write();
  out.wait();
}
