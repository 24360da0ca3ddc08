"""Writes the reference of operators (`make docs-ops`): docs/ops, a page for each yaml file of rows, and an index.

What a page says is what help() says (gen/emit_help.py), with every error, the formula of the derivative, and links.
"""
import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "gen"))
import emit_help  # noqa: E402

WRITTEN = "Written by `make docs-ops` from the rows in ops/, the C that they name, and ops/taken.txt."


def topic(file):
    return file.removeprefix("native_").removesuffix(".yaml")


def about(path):
    """The comment that a file of rows begins with."""
    with open(path, encoding="utf-8") as file:
        lines = []
        for line in file:
            if not line.startswith("#"):
                break
            lines.append(line.strip("# -\n"))
    return " ".join(lines)


def code(text):
    """Text as it is: with backticks inside, between two of them."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def cell(text):
    return text.replace("|", "\\|")


class Reference:
    def __init__(self, help):
        self.help = help
        merged = {n for n in help.places if help.base(n)[0] == "inplace"}
        self.page = {n: topic(help.ops(n)[0].row.file) for n in help.places if n not in merged}
        self.page.update({n: self.page[n[:-1]] for n in merged})
        self.own = sorted((n for n in help.places if n not in merged), key=lambda n: (n.startswith("_"), n))

    def link(self, shown):
        """A link to the section of `torch.linalg.solve` or of an operator's own name."""
        name = next((n for n in self.help.places if self.help.public(n).strip("`") == shown), shown)
        return f"[`{shown}`]({self.page[name]}.md#{name.removesuffix('_') if name not in self.own else name})" if name in self.page \
            else f"`{shown}`"

    def section(self, name):
        h = self.help
        text = [f"## {name}", "", h.sentence(name), "", "```python", *h.signatures(name)]
        inplace = name + "_"
        if inplace in self.page and inplace not in self.own:
            text += h.signatures(inplace)
        text += ["```", ""]
        arguments = h.arguments(name)
        if arguments:
            text += ["| argument | type | default | |", "| --- | --- | --- | --- |"]
            text += [f"| {n} | {cell(kinds)} | {f'`{default[0]}`' if default else ''} | {cell(words)} |"
                     for n, kinds, default, words in arguments] + [""]
        text += [f"- **Result:** {h.result(name)}.", f"- **Dtypes:** {h.dtypes(name)}.", self.gradient(name)]
        fields = h.ops(name)[0].row.fields
        if isinstance(fields.get("pointwise"), str):
            text.append(f"- **Loop:** `{fields['pointwise']}`, once for each dtype and instruction set.")
        made = h.made_of(name)
        if made:
            text.append(f"- **Made of:** {', '.join(map(self.link, made))}.")
        errors = h.errors(name)
        if errors:
            text.append("- **Raises:**")
            text += [f"  - {kind}: {message if message.startswith('for a dtype') else code(message)}" for kind, message in errors]
        places = ", ".join(f"[{path}](../../{path}#L{line})" for path, line in h.where(name))
        if h.field(name, "example"):
            text[-1:] = [text[-1], "", "```python", h.field(name, "example").rstrip(), "```", ""]
        return "\n".join([*text, f"- **C:** `{h.c_names(name).replace(', ', '`, `')}`.", f"- **Where it lives:** {places}.", ""])

    def gradient(self, name):
        words, where = self.help.gradient(name, True)
        if where is None:
            return f"- **Gradient:** {words}."
        path, line = where.split(":")
        return f"- **Gradient:** `{words}` ([ops/{path}](../../ops/{path}#L{line}))."

    def pages(self):
        topics = {}
        for name in self.own:
            topics.setdefault(self.page[name], []).append(name)
        files, rows = {}, []
        for page, names in sorted(topics.items()):
            path = os.path.join("ops", self.help.ops(names[0])[0].row.file)
            said = about(os.path.join(ROOT, path))
            contents = " · ".join(f"[{n}](#{n})" for n in names)
            files[f"{page}.md"] = "\n".join([f"# Operators of {page}", "", said, "", f"Rows: [{path}](../../{path}). {WRITTEN}", "",
                                             contents, "", *map(self.section, names)])
            rows.append(f"| [{page}]({page}.md) | {len(names)} | {cell(said)} |")
        letters = {}
        for name in self.own:
            if not name.startswith("_"):
                letters.setdefault(name[0], []).append(f"[{name}]({self.page[name]}.md#{name})")
        index = ["# Operators", "", WRITTEN + " `help(torch.add)` says the same.", "", "| topic | names | |", "| --- | --- | --- |", *rows,
                 "", "## By name", ""] + [f"**{letter}** {' · '.join(names)}\n" for letter, names in sorted(letters.items())]
        files["README.md"] = "\n".join(index)
        return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "ops"))
    options = parser.parse_args()
    pages = Reference(emit_help.Help(ROOT)).pages()
    os.makedirs(options.out, exist_ok=True)
    for name, text in pages.items():
        with open(os.path.join(options.out, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(f"{options.out}: {len(pages)} pages, {sum(map(len, pages.values())) / 1024:.0f} KB")


if __name__ == "__main__":
    main()
