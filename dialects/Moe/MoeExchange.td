//===- MoeExchange.td - Experts that are divided over ranks ---------------===//
//
// Where a token's experts are on other ranks, its row goes to each rank that has some of them, once, with the choices
// that fall there; what comes back is one row for each subtree of the sum (N5) that such a rank has whole.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_MOE_EXCHANGE
#define K2C_DIALECTS_MOE_EXCHANGE

include "dialects/Dist/DistInterfaces.td"
include "dialects/Moe/MoeBase.td"

class Moe_ExchangeOp<string mnemonic, list<Trait> traits = []> : TokenOp<MoeDialect, mnemonic, [], [Pure] # traits> {
  let changesRows = 1;
}

def Moe_RoutePlanOp : Moe_ExchangeOp<"route_plan", [DeclareOpInterfaceMethods<Dist_CountsOp>]> {
  let summary = "Find the rank of each choice, the rows to send and those that will come back";
  let description = [{
    By the placement of the layer, its ordinal in `among`: which rows of the message buffer a token takes, sorted by
    (rank, token), and which row of what comes back has the sum of a choice. `routes` has, for each token, the message
    row, the slot on the other rank and the returned row of each choice, -1 where a choice is none; `sent` and
    `returned` count rows by rank. A rank holds `slots` experts.

    ```mlir
    %routes, %sent, %returned = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 48
        : !e -> tensor<?x3x8xi32, #tok>, !counts, !counts
    ```
    [C1] experts and routes have `token` rows. [C2] experts are i32 [rows, top]. [C3] routes are i32 [rows, 3, top].
    [C4] all ranks together have a slot for each expert. [C5] both counts have the same members.
  }];
  let names = ["routes", "sent", "returned"];
  let arguments = (ins Nn_Rows:$experts, Index:$layer, Nn_IndicesAttr:$among, Nn_Int:$count, Nn_Int:$slots);
  let results = (outs Nn_Rows:$routes, Dist_Counts:$sent, Dist_Counts:$returned);
  let assemblyFormat = [{
    $experts `layer` $layer `among` custom<Indices>($among) `experts` $count `slots` $slots attr-dict
    `:` type($experts) `->` type($routes) `,` qualified(type($sent)) `,` qualified(type($returned))
  }];
}

def Moe_PackOp : Moe_ExchangeOp<"pack"> {
  let summary = "Write rows with their choices as messages";
  let description = [{
    A message is a row and, for each choice, the slot of its expert on the rank that it goes to and its router weight;
    -1 where the expert is on another rank (k2rt/placement.h).

    ```mlir
    %m = moe.pack %n, %w, %routes : !x, !w, tensor<?x3x8xi32, #tok>
        -> tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
    ```
    [C1] input, weights and routes have `token` rows, the result `message` rows. [C2] weights are f32 [rows, top]. [C3]
    routes are i32 [rows, 3, top]. [C4] a message is i8, the bytes of a row and of its choices.
  }];
  let names = ["messages"];
  let arguments = (ins Nn_Rows:$input, Nn_Rows:$weights, Nn_Rows:$routes);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weights `,` $routes attr-dict
    `:` type($input) `,` type($weights) `,` type($routes) `->` type($result)
  }];
}

def Moe_UnpackOp : Moe_ExchangeOp<"unpack"> {
  let summary = "Read the rows and choices of messages that arrived";
  let description = [{
    Rows by (rank, order), without the gaps between what ranks sent; of each choice the slot, -1 where the expert is on
    another rank, and the router weight.

    ```mlir
    %x, %s, %w = moe.unpack %m, %came : tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>, !counts
        -> !arrived, !chosen, !weights
    ```
    [C1] the input has `message` rows, the results `recv` rows of its site. [C2] slots are i32 [rows, top]. [C3] weights
    are f32 [rows, top]. [C4] a message is i8, the bytes of a row and of its choices.
  }];
  let names = ["rows", "slots", "weights"];
  let arguments = (ins Nn_Rows:$input, Dist_Counts:$came);
  let results = (outs Nn_Rows:$rows, Nn_Rows:$slots, Nn_Rows:$weights);
  let assemblyFormat = [{
    $input `,` $came attr-dict `:` type($input) `,` qualified(type($came)) `->` type($rows) `,` type($slots)
    `,` type($weights)
  }];
}

def Moe_ReturnPlanOp : Moe_ExchangeOp<"return_plan", [DeclareOpInterfaceMethods<Dist_CountsOp>]> {
  let summary = "Count the sums that go back";
  let description = [{
    For each row that arrived, the first of its sums among those that go back, and how many they are: one for each
    subtree that the rank has whole and of which the row chose an expert, in the order of the choices. `back` counts
    them by rank.

    ```mlir
    %sums, %back = moe.return_plan %s, %came layer %l among 1 to 61 experts 384 slots 48
        : !chosen, !counts -> tensor<?x2xi32, #arrived>, !counts
    ```
    [C1] slots and sums have `recv` rows. [C2] slots are i32 [rows, top], sums i32 [rows, 2]. [C3] both counts have the
    same members.
  }];
  let names = ["sums", "back"];
  let arguments = (ins Nn_Rows:$chosen, Dist_Counts:$came, Index:$layer, Nn_IndicesAttr:$among, Nn_Int:$count,
                       Nn_Int:$slots);
  let results = (outs Nn_Rows:$sums, Dist_Counts:$back);
  let assemblyFormat = [{
    $chosen `,` $came `layer` $layer `among` custom<Indices>($among) `experts` $count `slots` $slots attr-dict
    `:` type($chosen) `,` qualified(type($came)) `->` type($sums) `,` qualified(type($back))
  }];
}

def Moe_ReduceSubtreesOp : Moe_ExchangeOp<"reduce_subtrees"> {
  let summary = "Add the outputs of each row's experts, as far as the rank has whole subtrees";
  let description = [{
    N5's tree over the ids of all `experts` in `order`, cut where experts of a subtree are on other ranks: the sums of
    the largest subtrees that the rank has whole, and single outputs where a leaf is divided.

    ```mlir
    %u = moe.reduce_subtrees %d, %p, %s, %sums layer %l among 1 to 61 experts 384 ranks 8 order tree<128>
        : !slots, !permutation, !chosen, tensor<?x2xi32, #arrived> -> !sums
    ```
    [C1] the input has the permutation's slots, choices and sums its rows, the result `subtree` rows. [C2] columns and
    element type are kept. [C3] the leaves divide the experts. [C4] choices are i32 [rows, top], sums i32 [rows, 2].
  }];
  let names = ["partial"];
  let arguments = (ins Nn_Rows:$input, Moe_Permutation:$permutation, Nn_Rows:$chosen, Nn_Rows:$sums, Index:$layer,
                       Nn_IndicesAttr:$among, Nn_Int:$count, Nn_Int:$ranks, OptionalAttr<Moe_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $permutation `,` $chosen `,` $sums `layer` $layer `among` custom<Indices>($among) `experts` $count
    `ranks` $ranks `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` qualified(type($permutation)) `,` type($chosen) `,` type($sums) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Combine", "getCount()">];
}

def Moe_CombineOp : Moe_ExchangeOp<"combine"> {
  let summary = "Add the sums that came back for each token";
  let description = [{
    What is left of N5's tree: the sums of its subtrees, each under the first of its choices, joined as `unpermute`
    joins slots.

    ```mlir
    %r = moe.combine %u, %routes, %e experts 384 order tree<128> : !sums, tensor<?x3x8xi32, #tok>, !e -> !x
    ```
    [C1] the input has `subtree` rows, routes, choices and the result `token` rows. [C2] columns and element type are
    kept. [C3] the leaves divide the experts. [C4] choices are i32 [rows, top], routes i32 [rows, 3, top].
  }];
  let names = ["routed"];
  let arguments = (ins Nn_Rows:$input, Nn_Rows:$routes, Nn_Rows:$experts, Nn_Int:$count,
                       OptionalAttr<Moe_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $routes `,` $experts `experts` $count `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` type($routes) `,` type($experts) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Combine", "getCount()">];
}

#endif
