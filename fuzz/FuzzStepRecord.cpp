// Records of steps, as a rank reads them; what it accepts must have every index in bounds.
#include "RankManifests.h"
#include "engine/StepRecord.h"
#include <cstdlib>
#include <cstring>

using namespace k2c::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Manifest manifest = k2c::manifestOfSteps();
  static StepArrays arrays = std::move(*StepArrays::allocateOwn(manifest));
  std::vector<uint64_t> aligned(size / 8 + 1);
  std::memcpy(aligned.data(), data, size);
  const int64_t number =
      size < sizeof(StepRecordHeader) ? 0 : reinterpret_cast<StepRecordHeader *>(aligned.data())->step;
  const k2c::Expected<ReceivedStep> received =
      readStepRecord(manifest, reinterpret_cast<const std::byte *>(aligned.data()), static_cast<int64_t>(size), number,
                     /*tables=*/2, arrays);
  if (!received)
    return 0;
  for (int64_t row = 0; row < received->step.token_rows; ++row)
    for (size_t group = 0; group < 2; ++group)
      if (arrays.appendSlots[group][row] < 0 || arrays.appendSlots[group][row] >= manifest.groups[group].pages * 64)
        std::abort();
  return 0;
}
