"""Single-op mutations of a form: an op is deleted, duplicated or moved, as an error of a pass might do it.

A form is read as `k2c-opt --mlir-print-op-generic` writes it: an op a line, its values by number, all types spelled
out. Only blocks of functions without nested regions are changed, which is what shard-experts leaves.
"""
import random
import re

OP = re.compile(r'( +)(?:(%[^=]+) = )?"([\w.]+)"\(([^)]*)\)(.*) : \((.*)\) -> (.*)')
VALUE = re.compile(r"%[\w.]+(?:#\d+)?")
BLOCK = re.compile(r" *\^bb0\((.*)\):")
# What moves rows between ranks, from the slots of their experts to the sum of what came back.
FIRST, LAST = "moe.locate", "moe.combine"
LIST = "nn.layers"


def split_types(text):
    """The types of a list, cut at the commas that are in no bracket."""
    types, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<([{") - (letter in ">)]}" and text[at - 1 : at + 1] != "->")
        if letter == "," and depth == 0:
            types.append(text[begin:at].strip())
            begin = at + 1
    return [each for each in types + [text[begin:].strip()] if each]


class Op:
    """A line of a form: what it defines, takes, and of which types."""

    def __init__(self, line):
        found = OP.fullmatch(line)
        self.line = line
        self.isop = found is not None
        self.name, self.results, self.operands = "", [], []
        if not found:
            return
        self.indent, defined, self.name, operands, self.attributes, taken, types = found.groups()
        types = split_types(types[1:-1] if types.startswith("(") else types)
        self.operands = VALUE.findall(operands)
        self.taken = split_types(taken)
        base = defined.split(":")[0] if defined else ""
        names = [base] if len(types) == 1 else [f"{base}#{i}" for i in range(len(types))]
        self.results = list(zip(names, types)) if defined else []

    def written(self, base, operands=None):
        """The line with results called after `base` and other operands."""
        types = [each for _, each in self.results]
        count = f":{len(types)}" if len(types) > 1 else ""
        defined = f"{base}{count} = " if types else ""
        operands = ", ".join(self.operands if operands is None else operands)
        result = types[0] if len(types) == 1 else f"({', '.join(types)})"
        signature = f"({', '.join(self.taken)}) -> {result}"
        return f'{self.indent}{defined}"{self.name}"({operands}){self.attributes} : {signature}'

    def renamed(self, base):
        """What its results are called in `written(base)`."""
        return [base] if len(self.results) == 1 else [f"{base}#{i}" for i in range(len(self.results))]


class Block:
    """The lines of a function's block, ops that `begin` and `end` enclose."""

    def __init__(self, arguments, begin, ops):
        self.arguments, self.begin, self.ops = arguments, begin, ops
        self.made = {name: at for at, op in enumerate(ops) for name, _ in op.results}

    def before(self, at):
        """(name, type) of what is there before op `at`."""
        return self.arguments + [result for op in self.ops[:at] for result in op.results]

    def range(self, at):
        """The places before which op `at` may stand, its own left out. Nothing passes a list of layers, whose rows take
        the place of those that it is given."""
        op = self.ops[at]
        lists = [i for i, other in enumerate(self.ops) if other.name == LIST]
        if op.name == LIST:
            return []
        own = {name for name, _ in op.results}
        first = max([self.made[name] + 1 for name in op.operands if name in self.made], default=0)
        uses = (i for i, other in enumerate(self.ops) if own & set(other.operands))
        last = min(uses, default=len(self.ops) - 1)
        first = max([first] + [i + 1 for i in lists if i < at])
        last = min([last] + [i for i in lists if i > at])
        return [place for place in range(first, last + 1) if place not in (at, at + 1)]


def blocks(lines):
    """The blocks of the functions whose ops take or make rows."""
    found = []
    for at, line in enumerate(lines):
        head = BLOCK.fullmatch(line)
        if not head:
            continue
        end = at + 1
        while OP.fullmatch(lines[end]):
            end += 1
        pairs = [each.split(": ", 1) for each in split_types(head[1])]
        found.append(Block([(name, kind) for name, kind in pairs], at + 1, [Op(each) for each in lines[at + 1 : end]]))
    return found


class Mutator:
    """Mutations of a form, each drawn by a seed."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.blocks = [block for block in blocks(self.lines) if len(block.ops) > 2]

    def mutant(self, seed, kinds=("delete", "duplicate", "move", "branch")):
        """(what was done, the text)."""
        draw = random.Random(seed)
        while True:
            block = draw.choice(self.blocks)
            at = draw.randrange(len(block.ops) - 1)  # the terminator stays
            kind = draw.choice(kinds)
            changed = getattr(self, kind)(draw, block, at)
            if changed:
                text = self.lines[: block.begin] + changed + self.lines[block.begin + len(block.ops) :]
                return f"seed {seed}: {kind} {block.ops[at].name}", "\n".join(text) + "\n"

    @staticmethod
    def substituted(ops, names):
        """The lines with the values of `names` called otherwise."""
        return [VALUE.sub(lambda value: names.get(value[0], value[0]), op.line) for op in ops]

    def delete(self, draw, block, at):
        """Its results become earlier values of their types. Where there are none the uses are left undefined, which
        every reader refuses. Of an op that moves no rows the rest is another model, on one rank as on several."""
        names = [op.name for op in block.ops]
        if FIRST not in names or not names.index(FIRST) <= at <= names.index(LAST):
            return None
        stands = {}
        for name, kind in block.ops[at].results:
            others = [other for other, same in block.before(at) if same == kind]
            stands[name] = draw.choice(others) if others else name
        return [op.line for op in block.ops[:at]] + self.substituted(block.ops[at + 1 :], stands)

    def duplicate(self, draw, block, at):
        """Some of the ops behind it take the results of the copy."""
        op = block.ops[at]
        copies = dict(zip((name for name, _ in op.results), op.renamed("%copy")))
        rest = [self.substituted([each], copies if draw.random() < 0.5 else {})[0] for each in block.ops[at + 1 :]]
        return [each.line for each in block.ops[: at + 1]] + [op.written("%copy")] + rest

    def move(self, draw, block, at):
        """To where its operands are there and its results not yet taken."""
        places = block.range(at)
        if not places:
            return None
        to = draw.choice(places)
        lines = [op.line for op in block.ops]
        lines.insert(to, lines[at])
        del lines[at if to > at else at + 1]
        return lines

    def branch(self, draw, block, at):
        """Into an scf.if that is always taken: by a constant, or by the rows of the step, of which there are never so
        many, but which nobody can know to be alike. The other side forwards earlier values, or computes again."""
        op = block.ops[at]
        indent = op.indent
        constant = '"arith.constant"() <{value = true}> : () -> i1'
        if draw.random() < 0.5:
            lines = [f"{indent}%if = {constant}"]
        else:
            lines = [f'{indent}%rows = "rt.rows"() <{{count = #rt<count token>}}> : () -> i64',
                     f'{indent}%many = "arith.constant"() <{{value = 1099511627776 : i64}}> : () -> i64',
                     f'{indent}%if = "arith.cmpi"(%rows, %many) <{{predicate = 2 : i64}}> : (i64, i64) -> i1']
        types = [kind for _, kind in op.results]
        listed = ", ".join(types)

        def side(base, values):
            inner = [f"  {op.written(base)}"] if base else []
            return inner + [f'{indent}  "scf.yield"({", ".join(values)}) : ({listed}) -> ()']

        there = [[name for name, same in block.before(at) if same == kind] for kind in types]
        forwards = all(there) and draw.random() < 0.5
        other = side("", [draw.choice(names) for names in there]) if forwards else side("%else", op.renamed("%else"))
        name = op.results[0][0].split("#")[0] + (f":{len(types)}" if len(types) > 1 else "") + " = " if types else ""
        lines += [f'{indent}{name}"scf.if"(%if) ({{', *side("%then", op.renamed("%then")), f"{indent}}}, {{"]
        lines += other if types else [f'{indent}  "scf.yield"() : () -> ()']
        lines += [f"{indent}}}) : (i1) -> ({listed})"]
        return [each.line for each in block.ops[:at]] + lines + [each.line for each in block.ops[at + 1 :]]
