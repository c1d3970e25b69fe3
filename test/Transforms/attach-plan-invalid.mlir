// RUN: k2c-opt %s --attach-plan="weight-bytes=-1" --verify-diagnostics
// RUN: k2c-opt %s --attach-plan="cache-bytes=-1" --verify-diagnostics
// RUN: k2c-opt %s --attach-plan="prefill-seconds=-0.5" --verify-diagnostics
// RUN: k2c-opt %s --attach-plan="decode-seconds=-0.5" --verify-diagnostics
// RUN: k2c-opt %s --attach-plan="decode-seconds=1e30" --verify-diagnostics
// RUN: k2c-opt %s --attach-plan="expanded-from=-2" --verify-diagnostics

// expected-error @below {{attach-plan: a plan has no negative bytes, between 0 and 1e9 seconds, and expanded-from is at least -1}}
module {}
