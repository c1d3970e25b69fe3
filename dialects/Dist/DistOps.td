//===- DistOps.td - Collectives among ranks -------------------------------===//
#ifndef K2C_DIALECTS_DIST_OPS
#define K2C_DIALECTS_DIST_OPS

include "dialects/Dist/DistBase.td"
include "dialects/Dist/DistInterfaces.td"
include "dialects/Nn/NnOpBase.td"

def Dist_AllToAllOp : Op<DistDialect, "all_to_all",
                          [Nn_PlacedOp, OpAsmOpInterface, DeclareOpInterfaceMethods<Dist_CountsOp>]> {
  let summary = "Send rows to each member of a group and receive rows from each";
  let description = [{
    Every rank of the group runs the same sites in the same order, whether it has rows or not. `to` says which rows of
    the input go to whom. Where `from` is given, it says what comes from whom and where that goes in the result: the
    program knows it. Otherwise each member may send up to `quota` rows, has a place for so many in the result, and the
    op says, too, how many came. `at` gives the arena offset of each result.

    ```mlir
    %in, %came = dist.all_to_all %rows to %sent over ep site 0 quota 64 : !message, !counts -> !arrived, !counts
    %back = dist.all_to_all %sums to %back_counts from %returned over ep site 1 : !sums, !counts, !counts -> !sums
    ```
    [C1] the site is not negative. [C2] there is a positive quota or `from`, and not both. [C3] the op has a second
    result, of the members of `to`, if and only if it has a quota. [C4] rows keep columns and element type. [C5] `from`
    has the members of `to`.
  }];
  let arguments = (ins Nn_Rows:$input, Dist_Counts:$to, Optional<Dist_Counts>:$from, Dist_AxisAttr:$axis, Nn_Int:$site,
                       OptionalAttr<Nn_Int>:$quota, OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs Nn_Rows:$result, Optional<Dist_Counts>:$came);
  let assemblyFormat = [{
    $input `to` $to (`from` $from^)? `over` `` $axis `site` $site (`quota` $quota^)? (`at` $offsets^)? attr-dict
    `:` type($input) `,` qualified(type($to)) (`,` qualified(type($from))^)? `->` type($result)
    (`,` qualified(type($came))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      set(getResult(), "arrived");
      if (getCame())
        set(getCame(), "came");
    }
  }];
}

def Dist_GatherSlicesOp : Op<DistDialect, "gather_slices",
                              [Nn_PlacedOp, OpAsmOpInterface]> {
  let summary = "Bring the slices of a step together";
  let description = [{
    Ranks of a tensor-parallel group have the same step, and each carries a slice of its rows. The result has the rows
    of all slices, on each of them. Nobody counts: all have the same step. `at` gives the arena offset of the result.

    ```mlir
    %all = dist.gather_slices %x site 2 : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #nn.rows<gathered>>
    ```
    [C1] the site is not negative. [C2] the input has `token` rows, the result `gathered` ones of the same columns.
  }];
  let arguments = (ins Nn_Rows:$input, Nn_Int:$site, OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$input `site` $site (`at` $offsets^)? attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getResult(), "gathered"); }
  }];
}

def Dist_ScatterSlicesOp : Op<DistDialect, "scatter_slices", [Nn_PlacedOp, OpAsmOpInterface]> {
  let summary = "Send each slice of a step to the rank that carries it";
  let description = [{
    Each rank of a tensor-parallel group has something of all rows: a part of a sum. A result is what one of them has of
    this rank's slice, in the order of the ranks. `at` gives the arena offset of each.

    ```mlir
    %p0, %p1 = dist.scatter_slices %p site 3 : tensor<?x64xf32, #nn.rows<gathered>>
        -> tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>
    ```
    [C1] the site is not negative. [C2] the input has `gathered` rows, results have `token` ones of the same columns and
    element type. [C3] there are two results or more.
  }];
  let arguments = (ins Nn_Rows:$input, Nn_Int:$site, OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs Variadic<Nn_Rows>:$parts);
  let assemblyFormat = "$input `site` $site (`at` $offsets^)? attr-dict `:` type($input) `->` type($parts)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      for (::mlir::Value part : getParts())
        set(part, "part");
    }
  }];
}

/// Rows that each rank of a group needs of what all have parts of: they are shared with all, and what each makes of
/// them comes back (see Rationale.md).
class Dist_ShareOp<string mnemonic, list<Trait> traits = []> : TokenOp<DistDialect, mnemonic, [], [Pure] # traits> {
  let changesRows = 1;
}

def Dist_SharePlanOp : Dist_ShareOp<"share_plan", [DeclareOpInterfaceMethods<Dist_CountsOp>]> {
  let summary = "Count the rows that go to all members, and what comes back";
  let description = [{
    All rows of the input go to each member, this rank among them; as many come back from each, one member behind the
    other.

    ```mlir
    %sent, %returned = dist.share_plan %x : tensor<?x64xf32, #output> -> !counts, !counts
    ```
    [C1] rows are those of a step: `token`, `entering` or `output` ones. [C2] both counts have the same members.
  }];
  let names = ["sent", "returned"];
  let arguments = (ins Nn_Rows:$input);
  let results = (outs Dist_Counts:$sent, Dist_Counts:$returned);
  let assemblyFormat = [{
    $input attr-dict `:` type($input) `->` qualified(type($sent)) `,` qualified(type($returned))
  }];
}

def Dist_CloseGapsOp : Dist_ShareOp<"close_gaps"> {
  let summary = "The rows that arrived, without gaps";
  let description = [{
    Rows by (member, order), without the gaps between what members sent.

    ```mlir
    %all = dist.close_gaps %in, %came : tensor<?x64xf32, #message>, !counts -> tensor<?x64xf32, #recv>
    ```
    [C1] the input has `message` rows, the result `recv` rows of their site. [C2] columns and element type are kept.
  }];
  let names = ["all"];
  let arguments = (ins Nn_Rows:$input, Dist_Counts:$came);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $came attr-dict `:` type($input) `,` qualified(type($came)) `->` type($result)
  }];
}

def Dist_ShareReturnOp : Dist_ShareOp<"share_return", [DeclareOpInterfaceMethods<Dist_CountsOp>]> {
  let summary = "Count the rows that go back to whom they came from";
  let description = [{
    Of rows without gaps, those that each member has sent.

    ```mlir
    %back = dist.share_return %all, %came : tensor<?x64xf32, #recv>, !counts -> !counts
    ```
    [C1] rows are `recv` ones. [C2] both counts have the same members.
  }];
  let names = ["back"];
  let arguments = (ins Nn_Rows:$input, Dist_Counts:$came);
  let results = (outs Dist_Counts:$back);
  let assemblyFormat = [{
    $input `,` $came attr-dict `:` type($input) `,` qualified(type($came)) `->` qualified(type($back))
  }];
}

def Dist_JoinColumnsOp : Dist_ShareOp<"join_columns"> {
  let summary = "Put the columns of all members beside each other";
  let description = [{
    What came back for a row, from each member in their order.

    ```mlir
    %joined = dist.join_columns %parts, %returned : tensor<?x32xf32, #back>, !counts -> tensor<?x64xf32, #output>
    ```
    [C1] the input has `subtree` rows, the result those of a step. [C2] a row of the result is one of each member.
  }];
  let names = ["joined"];
  let arguments = (ins Nn_Rows:$input, Dist_Counts:$returned);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $returned attr-dict `:` type($input) `,` qualified(type($returned)) `->` type($result)
  }];
}

def Dist_ReceiveOp : Op<DistDialect, "receive", [Nn_SharedPlaceOp, OpAsmOpInterface]> {
  let summary = "Take rows from the stage before";
  let description = [{
    Ranks of a stage compute its layers, and ranks with the same place in all stages the same rows of the step. The
    result has the rows that the stage before sends, in place of the input; on the first stage it has those that enter
    there. Nobody counts: both have the same step.

    ```mlir
    %x = dist.receive %entering site 4 : tensor<?x64xf32, #nn.rows<entering>> -> tensor<?x64xf32, #nn.rows<token>>
    ```
    [C1] the site is not negative. [C2] the input has `entering` rows, the result `token` ones of the same columns and
    element type.
  }];
  let arguments = (ins Nn_Rows:$input, Nn_Int:$site);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$input `site` $site attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getResult(), "received"); }
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getSharedPlaces() {
      return {{getResult(), getInput()}};
    }
  }];
}

def Dist_SendOp : Op<DistDialect, "send", []> {
  let summary = "Hand rows to the next stage";
  let description = [{
    What the dist.receive of site `to` takes on the next stage. The last stage sends nothing.

    ```mlir
    dist.send %x site 5 to 4 : tensor<?x64xf32, #nn.rows<token>>
    ```
    [C1] both sites are not negative. [C2] the input has `token` rows.
  }];
  let arguments = (ins Nn_Rows:$input, Nn_Int:$site, Nn_Int:$to);
  let assemblyFormat = "$input `site` $site `to` $to attr-dict `:` type($input)";
  let hasVerifier = 1;
}

#endif
