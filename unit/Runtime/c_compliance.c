/* The public headers are C11 by themselves, and the shared structs have no hidden padding: the sum of their fields is
 * their size. Compiled with -std=c11 -pedantic-errors; the function returns 0. */
#include "k2rt/abi.def"
#include "k2rt/k2rt.h"
#include "k2rt/program.h"
#include "k2rt/reserve.h"

#define K2RT_STRUCT(name) enum { name##_field_bytes = 0
#define K2RT_FIELD(name, type, field) +sizeof(K2RT_TYPE_##type)
#define K2RT_END(name)                                                                                                 \
  }                                                                                                                    \
  ;
#include "k2rt/abi.def"

#define K2RT_STRUCT(name) _Static_assert(name##_field_bytes == sizeof(name), #name " has padding");
#include "k2rt/abi.def"

#define K2RT_STRUCT(name) _Static_assert(sizeof(name) % 8 == 0, #name " is not a multiple of 8 bytes");
#include "k2rt/abi.def"

int k2rt_c_compliance(void);

int k2rt_c_compliance(void) {
  k2rt_ir_query_fn query = 0;
  k2rt_limits limits = {0};
  return query == 0 && k2rt_reserve_bytes(&limits) > 0 ? 0 : 1;
}
