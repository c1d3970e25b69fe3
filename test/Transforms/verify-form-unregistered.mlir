// RUN: k2c-opt %s --set-numerics --verify-form="form=model" --allow-unregistered-dialect | FileCheck %s

// An op that nobody registered has no dialect; of the model form it is no op of tokens, and stays.
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 64>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK: "foo.bar"()
    "foo.bar"() : () -> ()
    return
  }
}
