#!/usr/bin/env python3
"""Writes the golden cases of unit/Runtime/TokenizerTest.cpp with the PyPI package `tokenizers` (0.23.3 was used).

Trains a few small byte-level BPE tokenizers of the kinds that published checkpoints have, makes texts of many scripts,
and writes what the package gives: NAME.json is the tokenizer, NAME.ids one line a text: its ids, or, with special
tokens added, its ids after "special". texts.json holds the texts. Run it in this folder; the result is deterministic.
"""
import json
import random
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = Path(__file__).resolve().parent

SENTENCES = """
The quick brown fox jumps over the lazy dog, and it isn't sorry; they'll say we've won 1,234 times.
Mixture-of-experts models route each token to a few experts. I'd call that "sparse", wouldn't you?
def main(argc: int) -> None:\\n    for i in range(10):\\n\\tprint(f"{i:03d}")  # comment
Der schnelle braune Fuchs springt über den faulen Hund. Größe, Maß, Ärger, Übung.
Le cœur a ses raisons que la raison ne connaît point ; été, façon, naïve, œuvre.
El niño comió piñas en el corazón de España. ¿Qué tal? ¡Muy bien!
Съешь же ещё этих мягких французских булок, да выпей чаю. Объём 3,14 м².
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Καλημέρα κόσμε!
敏捷的棕色狐狸跳过了懒狗。今天天气很好，我们去公园吧！价格是１２３元。
いろはにほへと ちりぬるを。カタカナとひらがなと漢字が混ざる文章です。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. ١٢٣٤٥
דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। १२३
สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง
Kæmi ný öxi hér, ykist þjófum nú bæði víl og ádrepa.
Pchnąć w tę łódź jeża lub ośm skrzyń fig. Zażółć gęślą jaźń.
👩‍👩‍👧‍👦 family, 🇩🇪 flag, 👍🏽 thumb, 😀😃😄 smiles, ❤️ heart, 1️⃣ keycap
x = 3.14159e-10; y := 0xDEADBEEF; z <= w && !q || (a[i] != b->c); // ok?
https://example.org/path?query=1&other=%20#fragment user@example.com
""".strip().replace("\\n", "\n").replace("\\t", "\t").split("\n")

ATOMS = ["a", "the", " the", "'s", "'LL", "’re", "don't", "1", "12", "123", "1234567", "½", "Ⅷ", "٣", "१२", "é", "e\u0301", "ß", "İ", "ǅ",
         "中", "中文", "の", "カ", "한", "글", "ا", "שָׁ", "न", "ก็", "😀", "👍🏽", "👩‍👧", "🇩🇪", "\ufe0f", "\u200d", "\u200b", "\u00a0", "\u2028",
         "\u3000", "\u0085", "\ufeff", "\ufffd", "\x00", "\x01", "\x7f", "\x1b[0m", " ", "  ", "   ", "        ", "\t", "\n", "\r\n", "\n\n", "\r", " \n",
         "\n ", "\v", "\f", ".", ",", "!", "?", "...", "—", "_", "__init__", "-", "=", "==", "->", "(", ")", "{}", "[0]", "\"", "'", "`", "$", "€", "§",
         "%", "&&", "||", "#", "@", "^", "~", "/", "\\\\", "+", "×", "∑", "←", "<", ">", "<|bos|>", "<|eos|>", "<|b", "<|bos|", "<tool>", " <tool> ",
         "word", "wordword", "ABC", "aBc", "ÀÉ", "ё", "Ж", "λ", "Ω", "\U0001d54f", "\U00010348", "\U000e0041", "\uffff", "\U0010ffff"]


def texts():
    rng = random.Random(20240607)
    out = ["", " ", "\n", "\r\n", "a", "é", "😀", "\x00", "<|bos|>", "<|bos|><|eos|>", " <|eos|> x", "a" * 300, " " * 70, "ab" * 100, "🙂" * 20, "0123456789" * 7]
    out += SENTENCES
    while len(out) < 900:
        out.append("".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 8))))
    while len(out) < 1500:
        sentence = rng.choice(SENTENCES)
        begin = rng.randrange(len(sentence))
        out.append(sentence[begin:begin + rng.randint(1, 24)])
    while len(out) < 1750:
        pieces = [rng.choice(SENTENCES) for _ in range(rng.randint(1, 3))]
        cut = [p[(b := rng.randrange(len(p))):b + rng.randint(1, 9)] for p in pieces]
        out.append(rng.choice([" ", "", "\n", "  "]).join(cut))
    while len(out) < 2000:
        # Any assigned or unassigned character but surrogates.
        chars = [rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0xd800), rng.randrange(0xe000, 0x110000)]) for _ in range(rng.randint(1, 7))]
        out.append("".join(map(chr, chars)))
    return out


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]


def level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **options})


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def train(pre, size=600, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(SENTENCES * 3, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=sorted(alphabet)))
    return tokenizer


def bos(tokenizer, after=False):
    bos_id = tokenizer.token_to_id("<|bos|>")
    special = [("<|bos|>", bos_id)] + ([("<|eos|>", tokenizer.token_to_id("<|eos|>"))] if after else [])
    template = processors.TemplateProcessing(single="<|bos|> $A" + (" <|eos|>" if after else ""), special_tokens=special)
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])


def tokenizers():
    gpt2 = train(level(use_regex=True))
    gpt2.add_special_tokens(["<|bos|>", "<|eos|>"])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=False)
    yield "gpt2", gpt2, 2000

    llama = train(pre_tokenizers.Sequence([split(LLAMA3), level()]), ignore_merges=True)
    llama.add_special_tokens(["<|bos|>", "<|eos|>"])
    bos(llama)
    yield "llama3", llama, 2000

    deepseek = train(pre_tokenizers.Sequence([*map(split, DEEPSEEK), level()]))
    deepseek.add_special_tokens(["<|bos|>", "<|eos|>", "<｜begin▁of▁sentence｜>"])
    deepseek.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("中文", normalized=False)])
    bos(deepseek, after=True)
    yield "deepseek", deepseek, 1000

    # Every flag of an added token and the prefix space.
    flags = train(level(use_regex=True, add_prefix_space=True), 400)
    flags.add_special_tokens([AddedToken("<|bos|>", lstrip=True), AddedToken("<|eos|>", rstrip=True), AddedToken("<tool>", lstrip=True, rstrip=True)])
    flags.add_tokens([AddedToken("word", single_word=True), AddedToken("the", single_word=True, lstrip=True), AddedToken("中"), AddedToken("中文"),
                      AddedToken("é"), AddedToken("\n\n", normalized=True), AddedToken("12", rstrip=True)])
    yield "flags", flags, 900

    # The other behaviours of Split, and Digits.
    cuts = train(pre_tokenizers.Sequence([
        split(r"\s", "merged_with_next"), split(r"[.,!?]", "merged_with_previous"), split(r"[\p{L}']", "contiguous"), split(r"_", "removed"),
        pre_tokenizers.Split("->", "isolated"), split(r"[^-=]", "isolated", invert=True), pre_tokenizers.Digits(individual_digits=True), level()]), 400)
    yield "cuts", cuts, 900


def golden(name, cases):
    """Ids of every text, of two texts with special tokens added, and the text of random ids."""
    tokenizer = Tokenizer.from_file(str(HERE / f"{name}.json"))  # what is tested is the file

    def ids(text, special):
        return " ".join(map(str, tokenizer.encode(text, add_special_tokens=special).ids))

    lines = [ids(text, False) for text in cases] + ["special " + ids(cases[k], True) for k in (17, 40)]
    (HERE / f"{name}.ids").write_text("\n".join(lines) + "\n")
    rng = random.Random(5)
    decoded = []
    for k in range(40):  # any ids, so also parts of characters
        sample = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(12)]
        decoded.append({"ids": sample, "skip": k < 20, "text": tokenizer.decode(sample, skip_special_tokens=k < 20)})
    (HERE / f"{name}.decoded.json").write_text(json.dumps(decoded, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    cases = texts()
    (HERE / "texts.json").write_text(json.dumps(cases, ensure_ascii=True, separators=(",\n", ":")) + "\n")
    for name, tokenizer, count in tokenizers():
        document = json.loads(tokenizer.to_str())
        if name == "gpt2":  # the older spelling of merges
            document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
        (HERE / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
        golden(name, cases[:count])
    golden("toy", cases[:300])  # the tokenizer of the tiny test checkpoints


if __name__ == "__main__":
    main()
