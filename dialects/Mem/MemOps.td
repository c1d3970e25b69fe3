//===- MemOps.td - The mem dialect ----------------------------------------===//
//
// What is known of memory once every buffer has an offset, as attributes.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_MEM_OPS
#define K2C_DIALECTS_MEM_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def MemDialect : Dialect {
  let name = "mem";
  let summary = "Memory: peaks, places and the certificate";
  let description = [{
    The `mem` dialect says where the arena's buffers lie and how many bytes a rank takes. It has attributes alone, which
    assign-memory and certify-memory write:

    `mem.peak` on functions and on the module: bytes of their arena. `mem.arguments` on layers: the offset of each
    of the rows that they take; what they carry is returned in its place. `mem.certificate` on the module. See
    Rationale.md.
  }];
  let cppNamespace = "::k2c::mem";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral peakAttrName = "mem.peak", argumentsAttrName = "mem.arguments",
                                           certificateAttrName = "mem.certificate";
  }];
}

def Mem_CertificateAttr : AttrDef<MemDialect, "Certificate"> {
  let mnemonic = "certificate";
  let summary = "the bytes of one rank, exactly";
  let description = [{
    Packed weights; planes of the cache at the limits; the arena; scratch of each worker; logits of all output rows.
    What the runtime takes beside these is the runtime's to state (k2rt/reserve.h). Lies on the module as
    `mem.certificate`.

    ```mlir
    #mem.certificate<weights = 1048576, cache = 65536, arena = 32768, scratch = 4096, logits = 1536>
    ```
    [C1] no size is negative.
  }];
  let parameters = (ins "int64_t":$weights, "int64_t":$cache, "int64_t":$arena, "int64_t":$scratch, "int64_t":$logits);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif
