#!/usr/bin/env python3
"""Checks docs/conventions.md against the libraries that are installed here, and writes its tables.

    conventions.py             runs every row that says "run"; 1 where a library does not do what its row says
    conventions.py --page      writes the tables between the marks of docs/conventions.md
    conventions.py --check     1 where these tables are not what is written; needs no library at all

What is said stands in conventions_facts.py alone. A row that is run poses a tiny problem on which the possible answers
differ, and says which of them the library's output fits within the bound: one, or the row is wrong."""

import argparse
import importlib.util
import sys
from pathlib import Path

from conventions_facts import FACTS, QUESTIONS, RUN, SOURCES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conventions.md"
sys.path.append(str(Path(__file__).resolve().parents[1]))  # attnbench of this checkout, where none is installed
BEGIN, END = "<!-- tables: bindings/python/real/conventions.py --page -->\n", "<!-- end of tables -->\n"
RUNNERS = {
    "conventions_torch": ("torch",),
    "conventions_jax": ("jax",),
    "conventions_onnx": ("onnx", "onnxruntime"),
}


def tables():
    """The page's tables: one for each question, and the sources that they name."""
    text = []
    for question, heading, note in QUESTIONS:
        text += [f"## {heading}\n", note + "\n", "| library | how it is asked for | what comes, as our line | checked |", "|---|---|---|---|"]
        for fact in FACTS:
            if fact.question == question:
                checked = "run" if fact.checked == RUN else f"read: [{fact.checked}](#sources)"
                text.append(f"| {fact.library} | {fact.asked} | {fact.means} | {checked} |")
        text.append("")
    text += ["## Sources\n", "What was read, and which lines say it:\n"]
    text += [f"- **{name}**: {where}" for name, where in SOURCES.items()]
    return "\n".join(text) + "\n"


def rewritten(page):
    head, rest = page.split(BEGIN)
    return head + BEGIN + "\n" + tables() + "\n" + END + rest.split(END)[1]


def run():
    """Status 1 where a row is wrong, 2 where nothing could be run."""
    cases, left_out = {}, []
    for module, needs in RUNNERS.items():
        missing = [needed for needed in needs if importlib.util.find_spec(needed) is None]
        if missing:
            left_out += needs
            continue
        runner = importlib.import_module(module)
        print(runner.VERSION)
        cases.update(runner.CASES)
    # A run that no row names would be a fact that the page does not have.
    wrong = ran = 0
    numbered = {(fact.library, fact.question): 0 for fact in FACTS}
    for fact in FACTS:
        numbered[fact.library, fact.question] += fact.checked == RUN
    for library, question, number in cases:
        if number >= numbered.get((library, question), 0):
            print(f"UNUSED   {library}: {question}: run {number} has no row")
            wrong += 1
    rows = {(fact.library, fact.question): [] for fact in FACTS if fact.checked == RUN}
    for fact in FACTS:
        if fact.checked == RUN:
            rows[fact.library, fact.question].append(fact)
    for key, facts in rows.items():
        for number, fact in enumerate(facts):
            case = cases.get((*key, number))
            if case is None:
                if fact.needs not in left_out:
                    print(f"MISSING  {fact.library}: {fact.question}: no run is written for {fact.asked}")
                    wrong += 1
                continue
            answers = case()
            fit = [answer for answer, verdict in answers.items() if verdict]
            shares = ", ".join(
                f"{answer}: {'fits' if verdict else 'not'}"
                + (f" ({verdict.worst_share:.2g} of the bound)" if hasattr(verdict, "worst_share") else "")
                for answer, verdict in answers.items()
            )
            good = fit == [fact.answer]
            wrong += not good
            ran += 1
            print(f"{'ok' if good else 'WRONG':8} {fact.library}: {fact.question}: {shares}")
            if not good:
                print(f"         the page says {fact.answer!r} of {fact.asked}")
    print(f"{ran} rows run, {wrong} wrong" + (f"; not installed: {', '.join(left_out)}" if left_out else ""))
    return 1 if wrong else 0 if ran else 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--page", action="store_true", help="write the tables into docs/conventions.md")
    choice.add_argument("--check", action="store_true", help="status 1 where the page's tables are not these")
    asked = parser.parse_args()
    if not (asked.page or asked.check):
        return run()
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        print(f"{PAGE} must hold the two marks of its tables once: {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 2
    if asked.page:
        beside = PAGE.with_suffix(".md.new")
        beside.write_text(rewritten(page))
        beside.replace(PAGE)
    elif page != rewritten(page):
        print(f"{PAGE.name} has other tables than conventions_facts.py: run conventions.py --page", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
