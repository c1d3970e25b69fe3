/* Between the two halves of the driver that tests play. */
#ifndef K2C_UNIT_RUNTIME_FAKE_FAKECUDAKERNELS_H
#define K2C_UNIT_RUNTIME_FAKE_FAKECUDAKERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a kernel ("k0" to "k3") on a launch, its first parameter, with its five arguments. */
void fake_cuda_run(const char *name, const void *launch, const uint64_t *args, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
