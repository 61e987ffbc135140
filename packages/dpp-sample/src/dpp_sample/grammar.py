"""Language models that are known exactly: probabilistic grammars read from left to right.

A `Grammar` answers as a language model does (`step_logprobs`, `logprob`, `sample` at a
temperature), but its numbers are exact, so that claims about laws can be checked against them. The
automaton behind it is built as it is visited: a state is the set of ways in which a prefix can be
parsed, each with its probability, and prefixes with the same future share one state.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .sources import Candidates

Rules = Mapping[str, Sequence[tuple[float, Sequence[str]]]]

# What is still to be read, as a linked list (first symbol, rest); () when nothing is.
_Rest = tuple[Any, ...]


@dataclass(slots=True)
class _State:
    """The law of the next token after all prefixes that lead here."""

    tokens: Int[np.ndarray, " t"]
    logprobs: Float[np.ndarray, " t"]
    rests: list[dict[_Rest, float]]  # after each token: the ways to go on, summing to 1
    following: dict[int, "_State"] = field(default_factory=dict)


class Grammar:
    """A probabilistic context-free grammar as an exact language model over its tokens.

    Parameters
    ----------
    rules
        Non-terminal -> its alternatives, each a probability and a sequence of symbols. Symbols
        that name no rule are tokens; a text is its tokens joined. No rule may come back to itself
        without a token before. Probabilities are divided by their sum.
    start
        The non-terminal of whole strings.

    Attributes
    ----------
    tokens
        Text of each token id; the last is the end token, "".
    eos
        Id of the end token.

    Examples
    --------
    >>> coin = Grammar({"start": [(0.75, ["heads"]), (0.25, ["tails"])]})
    >>> round(coin.logprob([coin.tokens.index("tails"), coin.eos]), 3)
    -1.386
    """

    def __init__(self, rules: Rules, start: str = "start") -> None:
        self._rules: dict[str, list[tuple[float, Sequence[str]]]] = {}
        for name, alternatives in rules.items():
            total = sum(p for p, _ in alternatives)
            if not alternatives or min(p for p, _ in alternatives) <= 0:
                raise InputError(f"rule {name!r}", expected="alternatives of positive probability")
            if any("" in symbols for _, symbols in alternatives):
                raise InputError(f"rule {name!r}", found="an empty token", expected="text")
            self._rules[name] = [(p / total, symbols) for p, symbols in alternatives]
        if start not in rules:
            raise InputError("start", found=repr(start), expected="the name of a rule")
        symbols = [s for found in self._rules.values() for _, alt in found for s in alt]
        self.tokens: Final = [*dict.fromkeys(s for s in symbols if s not in rules), ""]
        self.eos: Final = len(self.tokens) - 1
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        self._states: dict[tuple[tuple[_Rest, float], ...], _State] = {}
        self._start = self._state({(start, ()): 1.0})

    def step_logprobs(self, prefixes: Sequence[Sequence[int]]) -> Float[np.ndarray, "b vocab"]:
        """Log p of each token after each prefix; -inf where the grammar forbids it.

        Raises
        ------
        InputError
            If a prefix is not one of the grammar's, or has ended.
        """
        rows = np.full((len(prefixes), len(self.tokens)), -np.inf)
        for row, prefix in zip(rows, prefixes, strict=True):
            state = self._start
            for token in prefix:
                state = self._after(state, token)
            row[state.tokens] = state.logprobs
        return rows

    def logprob(self, token_ids: Sequence[int], *, temperature: float = 1.0) -> float:
        """Log-probability of a string, its end token included, when drawn at `temperature`."""
        state, total = self._start, 0.0
        for token in token_ids:
            at = np.flatnonzero(state.tokens == token)
            if not at.size:
                return -np.inf
            total += float(_tempered(state.logprobs, temperature)[at[0]])
            if token == self.eos:
                return total
            state = self._after(state, token)
        raise InputError("token_ids", found="no end token", expected=f"a last token of {self.eos}")

    def sample(self, n: int, *, temperature: float = 1.0, rng: RngLike = None) -> Candidates:
        """Draw `n` strings token by token, each step's law raised to 1 / `temperature`.

        `logprob` of the result is log p, `proposal_logprob` the exact log r of the draws.
        """
        if n < 1:
            raise InputError("n", found=n, expected="at least 1")
        if not 0 < temperature < np.inf:
            raise InputError("temperature", found=temperature, expected="a finite number above 0")
        rng = as_generator(rng)
        # Draws that share a prefix walk together: their next tokens are one multinomial draw.
        together: list[tuple[_State, int, tuple[int, ...], float, float]] = [
            (self._start, n, (), 0.0, 0.0)
        ]
        ended: list[tuple[tuple[int, ...], float, float]] = []
        while together:
            state, count, prefix, logprob, log_r = together.pop()
            tempered = _tempered(state.logprobs, temperature)
            counts = rng.multinomial(count, np.exp(tempered))
            for at in np.flatnonzero(counts):
                token = int(state.tokens[at])
                ids = (*prefix, token)
                lp, lr = logprob + float(state.logprobs[at]), log_r + float(tempered[at])
                if token == self.eos:
                    ended += [(ids, lp, lr)] * int(counts[at])
                else:
                    together.append((self._after(state, token), int(counts[at]), ids, lp, lr))
        drawn = [ended[i] for i in rng.permutation(n)]
        return Candidates(
            texts=[self.text(ids) for ids, _, _ in drawn],
            token_ids=[list(ids) for ids, _, _ in drawn],
            logprob=np.array([lp for _, lp, _ in drawn]),
            proposal_logprob=np.array([lr for _, _, lr in drawn]),
            n_tokens=np.array([len(ids) for ids, _, _ in drawn]),
            complete=np.ones(n, dtype=bool),
        )

    def text(self, token_ids: Sequence[int]) -> str:
        """The tokens' texts, joined."""
        return "".join(self.tokens[token] for token in token_ids)

    def strings(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Every string (token ids) with its log p; endless if the grammar is recursive."""
        waiting: list[tuple[_State, tuple[int, ...], float]] = [(self._start, (), 0.0)]
        while waiting:
            state, prefix, logprob = waiting.pop()
            for token, step in zip(state.tokens.tolist(), state.logprobs.tolist(), strict=True):
                if token == self.eos:
                    yield (*prefix, token), logprob + step
                else:
                    waiting.append((self._after(state, token), (*prefix, token), logprob + step))

    def _after(self, state: _State, token: int) -> _State:
        if token not in state.following:
            at = np.flatnonzero(state.tokens == token)
            if not at.size or token == self.eos:
                raise InputError("prefix", found=f"token {token}", expected="a prefix of a string")
            state.following[token] = self._state(state.rests[at[0]])
        return state.following[token]

    def _state(self, rests: dict[_Rest, float]) -> _State:
        key = tuple(sorted(((rest, round(p, 12)) for rest, p in rests.items()), key=repr))
        if key not in self._states:
            self._states[key] = self._expand(rests)
        return self._states[key]

    def _expand(self, rests: dict[_Rest, float]) -> _State:
        """Open the leading non-terminals and sort what is left by its first token."""
        waiting = list(rests.items())
        found: dict[int, dict[_Rest, float]] = {}
        while waiting:
            rest, p = waiting.pop()
            if rest and rest[0] in self._rules:
                for q, symbols in self._rules[rest[0]]:
                    longer: _Rest = rest[1]
                    for symbol in reversed(symbols):
                        longer = (symbol, longer)
                    waiting.append((longer, p * q))
            else:
                token, left = (self._ids[rest[0]], rest[1]) if rest else (self.eos, ())
                ways = found.setdefault(token, {})
                ways[left] = ways.get(left, 0.0) + p
        totals = {token: sum(ways.values()) for token, ways in sorted(found.items())}
        return _State(
            tokens=np.array(list(totals)),
            logprobs=_tempered(np.log(list(totals.values())), 1.0),
            rests=[{w: p / totals[t] for w, p in found[t].items()} for t in totals],
        )


def _tempered(logprobs: Float[np.ndarray, " t"], temperature: float) -> Float[np.ndarray, " t"]:
    scaled = logprobs / temperature
    shifted = scaled - scaled.max()
    return shifted - np.log(np.exp(shifted).sum())
