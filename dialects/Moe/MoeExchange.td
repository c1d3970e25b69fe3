//===- MoeExchange.td - Experts that are divided over ranks ---------------===//
//
// Where a token's experts are on other ranks, its row goes to each rank that has some of them, once, with the choices
// that fall there; what comes back is one row for each subtree of the sum (N5) that such a rank has whole. In two hops
// it goes to each node that has some, once, and from there to the ranks; subtrees are then first those of ranks, and
// what comes back is one row for each that the node has whole.
//
// Where ranks next to each other have parts of the same experts, that is a hop more: a row that arrived at one of them
// goes to all, and of each of its choices a part of the sum comes back from each. To the others they are one rank.
//
// Experts lie in slots: of a part and its rank, of all ranks of a node, of the world. An op says by `held` how many
// slots the holders that it speaks of have.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_MOE_EXCHANGE
#define K2C_DIALECTS_MOE_EXCHANGE

include "dialects/Dist/DistInterfaces.td"
include "dialects/Moe/MoeBase.td"

class Moe_ExchangeOp<string mnemonic, list<Trait> traits = []> : TokenOp<MoeDialect, mnemonic, [], [Pure] # traits> {
  let changesRows = 1;
}

def Moe_LocateOp : Moe_ExchangeOp<"locate"> {
  let summary = "Find the slot of each choice";
  let description = [{
    By the placement of the layer, its ordinal in `among`: a slot, among those of all ranks, of each expert; -1 where
    a choice is none. Of an expert with several slots it is the one on this rank, else one on this node, else one on a
    node, of `held` slots, that the token cannot avoid, else another one for each rank (k2rt/placement.h).

    ```mlir
    %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 384 held 96 : !e -> !e
    ```
    [C1] experts and result have `token` rows. [C2] both are i32 [rows, top]. [C3] all ranks together have a slot for
    each expert. [C4] nodes divide the slots.
  }];
  let names = ["slots"];
  let arguments = (ins Nn_Rows:$experts, Index:$layer, Nn_IndicesAttr:$among, Nn_Int:$count, Nn_Int:$slots,
                       Nn_Int:$held);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $experts `layer` $layer `among` custom<Indices>($among) `experts` $count `slots` $slots `held` $held attr-dict
    `:` type($experts) `->` type($result)
  }];
}

def Moe_RoutePlanOp : Moe_ExchangeOp<"route_plan", [DeclareOpInterfaceMethods<Dist_CountsOp>]> {
  let summary = "Find the member of each choice, the rows to send and those that will come back";
  let description = [{
    Choices are slots of all members together: of the world, or of a node. Members are ranks or nodes of `held` slots
    each. Which rows of the message buffer a row takes, sorted by (member, row), and which row of what comes back has
    the sum of a choice. `routes` has, for each row, the message row, the slot on the other member and the returned row
    of each choice, -1 where a choice is none; `sent` and `returned` count rows by member.

    Parts have the same slots as their rank: all members get each row, and return a row for each choice. Routes are then
    those of the first member, and rows of the others lie as far behind the first of theirs.

    ```mlir
    %routes, %sent, %returned = moe.route_plan %s layer %l among 1 to 61 experts 384 slots 384 within world ...
        : !e -> tensor<?x3x8xi32, #tok>, !counts, !counts
    ```
    [C1] choices and routes have the same rows, of tokens or arrived. [C2] choices are i32 [rows, top]. [C3] routes are
    i32 [rows, 3, top]. [C4] members are smaller than what they are within, and have all of the world's slots, or some;
    parts are within a rank. [C5] both counts have the same members.
  }];
  let names = ["routes", "sent", "returned"];
  let arguments = (ins Nn_Rows:$chosen, Index:$layer, Nn_IndicesAttr:$among, Nn_Int:$count, Nn_Int:$slots,
                       Dist_HolderAttr:$within, Dist_HolderAttr:$to, Nn_Int:$held);
  let results = (outs Nn_Rows:$routes, Dist_Counts:$sent, Dist_Counts:$returned);
  let assemblyFormat = [{
    $chosen `layer` $layer `among` custom<Indices>($among) `experts` $count `slots` $slots `within` `` $within
    `to` `` $to `held` $held attr-dict `:` type($chosen) `->` type($routes) `,` qualified(type($sent)) `,`
    qualified(type($returned))
  }];
}

def Moe_PackOp : Moe_ExchangeOp<"pack"> {
  let summary = "Write rows with their choices as messages";
  let description = [{
    A message is a row and, for each choice, the slot of its expert on the member that it goes to and its router weight;
    -1 where the expert is on another one (k2rt/placement.h).

    ```mlir
    %m = moe.pack %n, %w, %routes : !x, !w, tensor<?x3x8xi32, #tok>
        -> tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
    ```
    [C1] input, weights and routes have the same rows, of tokens or arrived, the result `message` rows. [C2] weights are
    f32 [rows, top]. [C3] routes are i32 [rows, 3, top]. [C4] a message is i8, the bytes of a row and of its choices.
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
    Rows by (member, order), without the gaps between what members sent; of each choice the slot, -1 where the expert is
    on another member, and the router weight.

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
    subtree that `holder`, of `held` slots, has whole and of which the row chose an expert, in the order of the choices.
    `back` counts them by member.

    ```mlir
    %sums, %back = moe.return_plan %s, %came layer %l among 1 to 61 experts 384 slots 384 by rank held 48
        : !chosen, !counts -> tensor<?x2xi32, #arrived>, !counts
    ```
    [C1] slots and sums have `recv` rows. [C2] slots are i32 [rows, top], sums i32 [rows, 2]. [C3] both counts have the
    same members. [C4] the holder is a part, which has no subtree whole, a rank or a node.
  }];
  let names = ["sums", "back"];
  let arguments = (ins Nn_Rows:$chosen, Dist_Counts:$came, Index:$layer, Nn_IndicesAttr:$among, Nn_Int:$count,
                       Nn_Int:$slots, Dist_HolderAttr:$holder, Nn_Int:$held);
  let results = (outs Nn_Rows:$sums, Dist_Counts:$back);
  let assemblyFormat = [{
    $chosen `,` $came `layer` $layer `among` custom<Indices>($among) `experts` $count `slots` $slots `by` `` $holder
    `held` $held attr-dict
    `:` type($chosen) `,` qualified(type($came)) `->` type($sums) `,` qualified(type($back))
  }];
}

def Moe_ReduceSubtreesOp : Moe_ExchangeOp<"reduce_subtrees"> {
  let summary = "Add the outputs of each row's experts, as far as the rank has whole subtrees";
  let description = [{
    N5's tree over the ids of all `experts` in `order`, cut where experts of a subtree are on other ranks: the sums of
    the largest subtrees that the rank has whole, and single outputs where a leaf is divided. A part has none whole, so
    that what it has of each output is a row.

    ```mlir
    %u = moe.reduce_subtrees %d, %p, %s, %sums layer %l among 1 to 61 experts 384 slots 384 order tree<128>
        : !slots, !permutation, !chosen, tensor<?x2xi32, #arrived> -> !sums
    %v = moe.reduce_subtrees %d, %p, %s, %sums layer %l among 1 to 61 experts 384 slots 384 by part order tree<128>
        : !slots, !permutation, !chosen, tensor<?x2xi32, #arrived> -> !sums
    ```
    [C1] the input has the permutation's slots, choices and sums its rows, the result `subtree` rows. [C2] columns and
    element type are kept. [C3] the tree has N5's leaves. [C4] choices are i32 [rows, top], sums i32 [rows, 2]. [C5] the
    holder is a rank or a part.
  }];
  let names = ["partial"];
  let arguments = (ins Nn_Rows:$input, Moe_Permutation:$permutation, Nn_Rows:$chosen, Nn_Rows:$sums, Index:$layer,
                       Nn_IndicesAttr:$among, Nn_Int:$count, Nn_Int:$slots,
                       DefaultValuedAttr<Dist_HolderAttr, "::k2c::dist::Holder::Rank">:$holder,
                       OptionalAttr<Moe_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $permutation `,` $chosen `,` $sums `layer` $layer `among` custom<Indices>($among) `experts` $count
    `slots` $slots (`by` `` $holder^)? `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` qualified(type($permutation)) `,` type($chosen) `,` type($sums) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Combine", "getCount()">];
}

def Moe_MergeSubtreesOp : Moe_ExchangeOp<"merge_subtrees"> {
  let summary = "Add the sums that came back for each row, as far as the node has whole subtrees";
  let description = [{
    As reduce_subtrees on the rank through which a row came to its node: the sums of the node's ranks, each under the
    first of its choices, become those of the largest subtrees that the node has whole in its `held` slots. So do on the
    rank through which a row came to its parts the outputs that these have made together.

    ```mlir
    %u = moe.merge_subtrees %b, %routes, %s, %sums layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128>
        : !sums, tensor<?x3x8xi32, #arrived>, !chosen, tensor<?x2xi32, #arrived> -> ...
    %u = moe.merge_subtrees %y, %routes, %s, %sums layer %l among 1 to 61 experts 384 slots 384 by rank held 48 ...
    ```
    [C1] input and result have `subtree` rows, routes, choices and sums the same `recv` rows. [C2] columns and element
    type are kept. [C3] the tree has N5's leaves. [C4] choices are i32 [rows, top], routes i32 [rows, 3, top], sums
    i32 [rows, 2]. [C5] the holder is a node or a rank.
  }];
  let names = ["merged"];
  let arguments = (ins Nn_Rows:$input, Nn_Rows:$routes, Nn_Rows:$chosen, Nn_Rows:$sums, Index:$layer,
                       Nn_IndicesAttr:$among, Nn_Int:$count, Nn_Int:$slots,
                       DefaultValuedAttr<Dist_HolderAttr, "::k2c::dist::Holder::Node">:$holder, Nn_Int:$held,
                       OptionalAttr<Moe_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $routes `,` $chosen `,` $sums `layer` $layer `among` custom<Indices>($among) `experts` $count
    `slots` $slots (`by` `` $holder^)? `held` $held `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` type($routes) `,` type($chosen) `,` type($sums) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Combine", "getCount()">];
}

def Moe_AddPartsOp : Moe_ExchangeOp<"add_parts"> {
  let summary = "Add what ranks have of each expert's output";
  let description = [{
    For each choice of the rows that went to all parts, by their routes: the f32 sums of some leaves of the down
    projection (N1), one of each member, are added as a balanced binary tree in f32, multiplied by the router weight of
    the choice, and rounded once to the result type (N5). So the row of a choice has the bits that its expert would give
    it on one rank, in `order`.

    ```mlir
    %y = moe.add_parts %b, %returned, %routes weighted %w order tree<4>
        : tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 8192>>, !dist.counts<members = 2>,
          tensor<?x3x8xi32, #arrived>, !weights -> tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
    ```
    [C1] routes and router weights have the same `recv` rows, input and result `subtree` rows of one site. [C2] the
    input is f32 and has the columns of the result. [C3] members are a power of two, two or more, and divide the leaves
    of the order. [C4] routes are i32 [rows, 3, top], router weights f32 [rows, top].
  }];
  let names = ["added"];
  let arguments = (ins Nn_Rows:$input, Dist_Counts:$returned, Nn_Rows:$routes, Nn_Rows:$weights,
                       OptionalAttr<Nn_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $returned `,` $routes `weighted` $weights `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` qualified(type($returned)) `,` type($routes) `,` type($weights) `->` type($result)
  }];
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
    kept. [C3] the tree has N5's leaves. [C4] choices are i32 [rows, top], routes i32 [rows, 3, top].
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
