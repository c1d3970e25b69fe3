//===- MBarriers.h - Barriers in shared memory ----------------------------===//
#ifndef K2C_LIB_PTX_MBARRIERS_H
#define K2C_LIB_PTX_MBARRIERS_H

#include "Decoder.h"
#include "Execution.h"

namespace k2c::ptx {

/// The object at an address as `lane` sees it; null: there is none, or the lane does not know that there is, which has
/// been recorded.
MBarrier *mbarrierAt(Machine &machine, Warp &warp, const Operation &operation, uint64_t address, int lane);
/// The one at an address of `cta`, for the asynchronous proxy.
MBarrier *mbarrierOf(Machine &machine, Warp &warp, const Operation &operation, Cta &cta, uint64_t address, int lane);

/// Begins the next phase if the current one is complete. What is wrong; empty: nothing.
std::string advance(MBarrier &object);

/// cp.async behind these modifiers, and st.async. (AsyncCopies.cpp)
void decodeAsyncCopy(Decoder &decoder);
void decodeAsyncStore(Decoder &decoder);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_MBARRIERS_H
