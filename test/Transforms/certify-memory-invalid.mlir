// RUN: k2c-opt %s --certify-memory --verify-diagnostics

// expected-error @below {{certify-memory: the module has no nn.limits or no mem.peak; run assign-memory first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {}
