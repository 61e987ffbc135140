"""Arithmetic word problems, with an exact language model of their chains of steps.

The model behind a problem is a `Grammar`: it picks the correct plan or one of three typical wrong
ones, slips in one step of one chain in ten, carries the slip along, and varies the wording. The
answer of a chain is its last number. The problems are made, not taken from GSM8K (Cobbe et al.
2021, arXiv 2110.14168), which no package carries.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .grammar import Grammar

SLIP = 0.1  # share of chains in which one step's result is off, by 1 or 10 either way
SLIPS = (-10, -1, 1, 10)

Step = tuple[str, int | str, int | str]  # operator, operands: a number, or "x" for the last result
Plans = tuple[tuple[Step, ...], ...]

# Per kind of problem: its text and, for its numbers a, b, c, the plans, the correct one first.
_KINDS: tuple[tuple[str, Callable[[int, int, int], Plans]], ...] = (
    (
        "Ana has {a} boxes of {b} pens and gives {c} pens away. How many are left?",
        lambda a, b, c: (
            (("*", a, b), ("-", "x", c)),
            (("*", a, b), ("+", "x", c)),
            (("+", a, b), ("-", "x", c)),
            (("-", b, c), ("*", "x", a)),
        ),
    ),
    (
        "{a} people ride, {b} get off. Twice those left and {c} more get on. How many get on?",
        lambda a, b, c: (
            (("-", a, b), ("*", "x", 2), ("+", "x", c)),
            (("-", a, b), ("+", "x", c), ("*", "x", 2)),
            (("+", a, b), ("*", "x", 2), ("+", "x", c)),
            (("*", a, 2), ("-", "x", b), ("+", "x", c)),
        ),
    ),
    (
        "Ben earns {a} a week and spends {b} of it. What has he saved after {c} weeks?",
        lambda a, b, c: (
            (("-", a, b), ("*", "x", c)),
            (("*", a, c), ("-", "x", b)),
            (("+", a, b), ("*", "x", c)),
            (("-", a, b), ("+", "x", c)),
        ),
    ),
    (
        "A baker makes {a} loaves before noon and {b} after it. How many in {c} days?",
        lambda a, b, c: (
            (("+", a, b), ("*", "x", c)),
            (("*", b, c), ("+", "x", a)),
            (("*", a, c), ("+", "x", b)),
            (("+", a, b), ("+", "x", c)),
        ),
    ),
    (
        "An empty tank of {a} litres takes in {b} a minute. What is missing after {c} minutes?",
        lambda a, b, c: (
            (("*", b, c), ("-", a, "x")),
            (("*", b, c), ("+", a, "x")),
            (("+", b, c), ("-", a, "x")),
            (("*", b, c),),
        ),
    ),
)


@dataclass(frozen=True)
class Problem:
    """A word problem, its answer and the model that solves it."""

    text: str
    answer: int
    grammar: Grammar


def word_problems(
    n: int = 100,
    *,
    correct_prior: float | tuple[float, float] = 0.45,
    rng: RngLike = 0,
) -> list[Problem]:
    """Problems of five kinds in turn.

    Parameters
    ----------
    n
        Number of problems.
    correct_prior
        Probability of the correct plan, the wrong ones share the rest; two numbers: drawn
        uniformly between them for each problem.
    rng
        Of the numbers, which are drawn until the plans' answers are positive and different.
    """
    low, high = correct_prior if isinstance(correct_prior, tuple) else (correct_prior,) * 2
    if not 0 < low <= high < 1:
        raise InputError("correct_prior", found=correct_prior, expected="between 0 and 1")
    rng = as_generator(rng)
    return [_problem(i % len(_KINDS), float(rng.uniform(low, high)), rng) for i in range(n)]


def _problem(kind: int, prior: float, rng: np.random.Generator) -> Problem:
    text, plans_of = _KINDS[kind]
    while True:
        a, b, c = (int(v) for v in rng.integers((20, 5, 3), (90, 20, 12)))
        plans = plans_of(a, b, c)
        answers = [_result(plan) for plan in plans]
        if min(answers) > 0 and len(set(answers)) == len(answers):
            break
    rules: dict[str, list[tuple[float, list[str]]]] = {
        "start": [],
        "opening": [(0.4, ["First,"]), (0.3, ["We compute"]), (0.2, ["Start with"]), (0.1, [":"])],
        "then": [(0.5, [" Then"]), (0.3, [" Next,"]), (0.2, [" So"])],
        "closing": [(0.5, [" The answer is"]), (0.3, [" Answer:"]), (0.2, [" That gives"])],
    }
    for p, plan in zip((prior, *[(1 - prior) / 3] * 3), plans, strict=True):
        slips = [(place, off) for place in range(len(plan)) for off in SLIPS]
        rules["start"].append((p * (1 - SLIP), _chain(plan)))
        rules["start"] += [(p * SLIP / len(slips), _chain(plan, *slip)) for slip in slips]
    return Problem(text.format(a=a, b=b, c=c), answers[0], Grammar(rules))


def _chain(plan: tuple[Step, ...], wrong_at: int = -1, off: int = 0) -> list[str]:
    """Symbols of a chain; the result of one step may be off, and is carried along."""
    symbols: list[str] = []
    last = 0
    for place, step in enumerate(plan):
        operator, x, y, last = _done(step, last)
        last += off if place == wrong_at else 0
        symbols += ["then" if place else "opening"]
        symbols += [f" {x}", f" {operator}", f" {y}", " =", f" {last}", "."]
    return [*symbols, "closing", f" {last}", "."]


def _result(plan: tuple[Step, ...]) -> int:
    last = 0
    for step in plan:
        *_, last = _done(step, last)
    return last


def _done(step: Step, last: int) -> tuple[str, int, int, int]:
    """Operator, operands and exact result of a step after the result `last`."""
    operator = step[0]
    x, y = (last if isinstance(v, str) else v for v in step[1:])
    return operator, x, y, {"+": x + y, "-": x - y, "*": x * y}[operator]
