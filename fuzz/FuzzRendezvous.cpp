// Hellos and answers of a rendezvous, as anyone may send them to the port of rank 0, or answer a rank.
#include "Rendezvous.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  k2c::readRendezvous({reinterpret_cast<const char *>(data), size});
  return 0;
}
