// RUN: k2c-opt %s --set-numerics="compute=f64 mla=phased" --verify-diagnostics

// expected-error @below {{set-numerics: compute 'f64' with mla 'phased' is unknown; compute is f32 or bf16, mla is phased, absorbed or expanded}}
module {}
