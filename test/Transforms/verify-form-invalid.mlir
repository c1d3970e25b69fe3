// RUN: k2c-opt %s --verify-form="form=final" --verify-diagnostics

// expected-error @below {{verify-form: no form is called 'final'; forms are model, planned, distributed, scheduled, runtime}}
module {}
