// What test/Style/diagnostics.test holds the gate to.
void f() {
  op->emitOpError("this message is"
                  " never quoted");
  op->emitError() << x
                  << "second half of "
                     "a broken literal";
  // emitError("a comment has no test");
  return Error{path, "this one is quoted", "and its \"remedy\" is"};
}

static Error noSuchThing(const std::string &thing) { return {thing, "does not exist at all", ""}; }

void fail(const std::string &message);

void g() {
  fail("a hard disk " + name + " burns");
  std::string remedy = "buy another one";
  std::fprintf(stderr, "%d disks %s burnt\n%s are left\n", count, name, others);
}

std::string whyNot(const std::string &disk) {
  if (disk.empty())
    return "no disk was given";
  if (disk == "1")
    return disk + " is the only disk";
  return rewriter.notifyMatchFailure(disk, "nobody reads this");
}

Error bend(const std::string &file) { return damaged(file, "'" + file + "' is bent out of shape"); }

std::string page() { return "<p class=\"lead\">Disks are <div>round</div></p>"; }
