// Philox4x32-10: ten rounds of two 32 x 32 -> 64 bit products, the key bumped
// by Weyl constants in between. J. Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011.
#include "k2rt/Sampler.h"

namespace k2c::runtime {

PhiloxBlock philox(uint64_t counterLow, uint64_t counterHigh, uint64_t key) {
  uint32_t c0 = uint32_t(counterLow), c1 = uint32_t(counterLow >> 32);
  uint32_t c2 = uint32_t(counterHigh), c3 = uint32_t(counterHigh >> 32);
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

double uniform(uint64_t seed, int64_t choice, int64_t position) {
  PhiloxBlock block = philox(uint64_t(position), uint64_t(choice), seed);
  uint64_t bits = uint64_t(block.word[0]) << 32 | block.word[1];
  return double(bits >> 11) * 0x1p-53;
}

} // namespace k2c::runtime
