r"""Patterns of module names that others write, matched in time linear in the name whatever the pattern.

A glob has ``*``, ``?`` and ``[...]``. An expression has literals, ``.``, escapes (``\.``, ``\d``, ``\w``,
``\s`` and their opposites), classes, ``^`` and ``$`` at its ends, groups with alternatives, and ``?``,
``*``, ``+`` and ``{m,n}`` behind one character; behind a group of several only ``?``. Nothing else is read:
no backreference, no looking ahead, no flag.

All patterns of a list run side by side as the bits of one number (the extended Shift-And of Navarro and
Raffinot 2002, section 4.2): a character of a name costs a few operations on it and never a search.
"""

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

MOST_ELEMENTS: Final = 10_000
"""Characters and classes of all patterns of a list, with every alternative written out."""
LONGEST_EXPRESSION: Final = 500
_MOST_WRITTEN_OUT: Final = 5000
"""Those of one expression."""
_DEEPEST: Final = 20
MATCHED: Final = -1
"""The state behind a match that no further character undoes."""

_ASCII: Final = frozenset(map(chr, range(128)))
_DIGITS: Final = frozenset("0123456789")
_SPACES: Final = frozenset(" \t\n\r\f\v")
_WORDS: Final = frozenset(char for char in _ASCII if char.isalnum() or char == "_")
_ANY: Final = _ASCII - {"\n"}
_CLASSES: Final = {
    "d": _DIGITS,
    "w": _WORDS,
    "s": _SPACES,
    "D": _ASCII - _DIGITS,
    "W": _ASCII - _WORDS,
    "S": _ASCII - _SPACES,
}
_COUNTED: Final = re.compile(r"\{(\d{0,3})(?:(,)(\d{0,3}))?\}")


class PatternError(ValueError):
    """A pattern that is not read here."""


class Element(NamedTuple):
    """Characters of which one stands here, or none (``optional``), or more (``repeats``)."""

    chars: frozenset[str]
    optional: bool = False
    repeats: bool = False


_LITERALS: Final = {char: Element(frozenset(char)) for char in _ASCII}
"""One for each character, so that a pattern that is kept takes little room."""
_ANY_ONE: Final = Element(_ASCII)
_ANY_NUMBER: Final = Element(_ASCII, optional=True, repeats=True)
_ANY_BUT_A_LINE: Final = Element(_ANY)
_NEVER: Final = Element(frozenset())
"""Of a character that no module's name has."""


class _Anchor(Enum):
    START = "start"
    END = "end"


class Accepts(Enum):
    """Where a name may end behind a pattern."""

    ANYWHERE = "anywhere"
    AT_THE_END = "at the end"
    AT_A_MODULE = "at the end of a module's name"


class Sequence(NamedTuple):
    """Elements one behind the other, from the beginning of a name."""

    elements: tuple[Element, ...]
    accepts: Accepts


_Part = Element | _Anchor
_Written = list[_Part]
"""One way through a pattern: its alternatives are written out."""


@lru_cache(maxsize=128)
def glob_sequences(text: str) -> tuple[Sequence, ...]:
    """A glob of a module and of all below it."""
    elements: list[Element] = []
    place = 0
    while place < len(text):
        char, place = text[place], place + 1
        match char:
            case "*":
                elements.append(_ANY_NUMBER)
            case "?":
                elements.append(_ANY_ONE)
            case "[" if (end := text.find("]", place + 1 + (text[place : place + 1] == "!"))) > 0:
                elements.append(Element(_glob_class(text[place:end])))
                place = end + 1
            case _:
                elements.append(_LITERALS.get(char, _NEVER))
    return (Sequence(tuple(elements), Accepts.AT_A_MODULE),)


def _glob_class(inner: str) -> frozenset[str]:
    negated = inner.startswith("!")
    chars = _ranges(list(inner.removeprefix("!")))
    return _ASCII - chars if negated else chars


def _ranges(items: list[str]) -> frozenset[str]:
    """The characters of a class, ``a``, ``-``, ``z`` standing for all from ``a`` to ``z``."""
    chars: set[str] = set()
    place = 0
    while place < len(items):
        if place + 2 < len(items) and items[place + 1] == "-":
            first, last = items[place], items[place + 2]
            chars.update(char for char in _ASCII if first <= char <= last)
            place += 3
        else:
            chars.add(items[place])
            place += 1
    return frozenset(chars)


@lru_cache(maxsize=128)
def expression_sequences(text: str) -> tuple[Sequence, ...]:
    """An expression that a name begins with; raises :class:`PatternError` for one that is not read here."""
    if len(text) > LONGEST_EXPRESSION:
        raise PatternError(f"is longer than {LONGEST_EXPRESSION} characters")
    return tuple(map(_sequence, _Parser(text).parsed()))


def _sequence(written: _Written) -> Sequence:
    """Without its anchors, which stand at its ends alone."""
    while written and written[0] is _Anchor.START:
        written = written[1:]
    accepts = Accepts.ANYWHERE
    while written and written[-1] is _Anchor.END:
        written, accepts = written[:-1], Accepts.AT_THE_END
    elements = tuple(part for part in written if isinstance(part, Element))
    if len(elements) < len(written):
        raise PatternError("has ^ or $ elsewhere than at an end")
    return Sequence(elements, accepts)


class _Parser:
    """Reads an expression from left to right into the ways through it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def parsed(self) -> list[_Written]:
        """The ways through the whole expression."""
        ways = self._alternatives(0)
        if self._place < len(self._text):
            raise PatternError("closes a group that is not open")
        return ways

    def _next(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self) -> str:
        char = self._next()
        if not char:
            raise PatternError("ends too early")
        self._place += 1
        return char

    def _alternatives(self, depth: int) -> list[_Written]:
        if depth > _DEEPEST:
            raise PatternError(f"nests more than {_DEEPEST} groups")
        ways = self._branch(depth)
        while self._next() == "|":
            self._place += 1
            ways += self._branch(depth)
        return _few(ways)

    def _branch(self, depth: int) -> list[_Written]:
        ways: list[_Written] = [[]]
        while self._next() not in ("", "|", ")"):
            parts = self._quantified(self._atom(depth))
            _few_pairs(ways, parts)
            ways = _few([[*before, *after] for before, after in product(ways, parts)])
        return ways

    def _atom(self, depth: int) -> list[_Written]:
        match char := self._take():
            case "(":
                return self._group(depth)
            case "[":
                return [[Element(self._class())]]
            case "^" | "$":
                return [[_Anchor.START if char == "^" else _Anchor.END]]
            case "\\":
                return [[self._escaped()]]
            case "*" | "+" | "?" | "{":
                raise PatternError("repeats nothing, or what is repeated already")
            case _:
                return [[_ANY_BUT_A_LINE if char == "." else _LITERALS.get(char, _NEVER)]]

    def _group(self, depth: int) -> list[_Written]:
        if self._next() == "?":
            named = re.compile(r"\?(?::|P<\w{1,50}>)").match(self._text, self._place)
            if not named:
                raise PatternError("has a group that is none of alternatives")
            self._place = named.end()
        ways = self._alternatives(depth + 1)
        if self._next() != ")":
            raise PatternError("does not close a group")
        self._place += 1
        return ways

    def _escaped(self) -> _Part:
        char = self._take()
        if char in "AZ":
            return _Anchor.START if char == "A" else _Anchor.END
        return Element(_meant(char))

    def _class(self) -> frozenset[str]:
        negated = self._next() == "^"
        self._place += negated
        items: list[str] = []
        whole: frozenset[str] = frozenset()
        while (char := self._take()) != "]" or not (items or whole):
            if char == "\\":
                whole |= _meant(self._take())
            else:
                items.append(char)
        chars = _ranges(items) | whole
        return _ASCII - chars if negated else chars

    def _quantified(self, ways: list[_Written]) -> list[_Written]:
        bounds = self._bounds()
        if bounds is None:
            return ways
        elements = [way[0] for way in ways if len(way) == 1 and isinstance(way[0], Element)]
        once = len(elements) == len(ways) and not any(one.optional or one.repeats for one in elements)
        if once:
            chars = frozenset[str]().union(*(one.chars for one in elements))
            return [_repeated(chars, *bounds)]
        if bounds == (0, 1):
            return [*ways, []]
        raise PatternError("repeats a group of more than one character, or what is repeated already")

    def _bounds(self) -> tuple[int, int | None] | None:
        """The least and the most of a quantifier, which may be lazy: it matches the same names."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        found: tuple[int, int | None] | None = simple.get(self._next())
        if found:
            self._place += 1
        elif self._next() == "{":
            found = self._counted()
        if found and self._next() == "?":
            self._place += 1
        if found and self._next() in ("*", "+", "{", "?"):
            raise PatternError("repeats what is repeated already")
        return found

    def _counted(self) -> tuple[int, int | None]:
        match = _COUNTED.match(self._text, self._place)
        if not match or not (match[1] or match[3]):
            raise PatternError("has a brace that counts nothing")
        self._place = match.end()
        least = int(match[1] or 0)
        most = (int(match[3]) if match[3] else None) if match[2] else least
        if most is not None and most < least:
            raise PatternError("has a brace that counts nothing")
        return least, most


def _repeated(chars: frozenset[str], least: int, most: int | None) -> _Written:
    if most is None:
        once = [Element(chars)] * (least - 1)
        return [*once, Element(chars, optional=not least, repeats=True)]
    return [*[Element(chars)] * least, *[Element(chars, optional=True)] * (most - least)]


def _meant(char: str) -> frozenset[str]:
    """What stands behind a backslash."""
    if char in _CLASSES:
        return _CLASSES[char]
    if char.isascii() and char.isalnum():
        raise PatternError("has an escape that is not read here")
    return frozenset(char)


def _few(ways: list[_Written]) -> list[_Written]:
    if sum(map(len, ways)) + len(ways) > _MOST_WRITTEN_OUT:
        raise PatternError("has too many alternatives")
    return ways


def _few_pairs(first: list[_Written], second: list[_Written]) -> None:
    if len(first) * len(second) > _MOST_WRITTEN_OUT:
        raise PatternError("has too many alternatives")


def element_count(sequences: Iterable[Sequence]) -> int:
    """What a list of patterns costs a character of a name."""
    return sum(len(sequence.elements) + 1 for sequence in sequences)


class Patterns:
    """Patterns that run side by side; a state is the set of places that they have come to.

    Bit ``i`` of a state says that the elements of a sequence up to the ``i``-th stand behind us; every
    sequence has a bit in front of its first element.
    """

    def __init__(self, sequences: Iterable[Sequence]) -> None:
        self._behind: dict[frozenset[str], int] = {}
        """Places behind the elements of the same characters."""
        self._again = 0
        self._optional = 0
        self._accepting = dict.fromkeys(Accepts, 0)
        starts, place = 0, 0
        for sequence in sequences:
            starts |= 1 << place
            place = self._add(sequence, place)
        self._fitting: dict[str, int] = {}
        """Places behind an element that a character fits."""
        for chars, places in self._behind.items():
            for char in chars:
                self._fitting[char] = self._fitting.get(char, 0) | places
        runs = self._optional
        self._run_starts = ~runs & (runs >> 1)
        self._run_ends = runs & ~(runs >> 1)
        self.start = self._passed(starts)
        self._ends = self._accepting[Accepts.ANYWHERE] | self._accepting[Accepts.AT_THE_END]
        self._ends |= self._accepting[Accepts.AT_A_MODULE]

    def _add(self, sequence: Sequence, place: int) -> int:
        """Adds a sequence whose first bit is ``place``; answers with that of the next."""
        for element in sequence.elements:
            place += 1
            bit = 1 << place
            self._behind[element.chars] = self._behind.get(element.chars, 0) | bit
            self._again |= bit * element.repeats
            self._optional |= bit * element.optional
        self._accepting[sequence.accepts] |= 1 << place
        return place + 1

    def _passed(self, state: int) -> int:
        """The state with optional elements left out behind it, all of a run in one subtraction."""
        reached = state | self._run_ends
        return state | (self._optional & ~((reached - self._run_starts) ^ reached))

    def after(self, state: int, text: str) -> int:
        """The state behind ``text``; ``MATCHED`` where a pattern has been met, 0 where none can be."""
        anywhere, module = self._accepting[Accepts.ANYWHERE], self._accepting[Accepts.AT_A_MODULE]
        for char in text:
            if state == MATCHED or state & anywhere or (char == "." and state & module):
                return MATCHED
            if not state:
                return 0
            fits = self._fitting.get(char, 0)
            state = self._passed((state << 1 | state & self._again) & fits)
        return state

    def hold(self, state: int) -> bool:
        """Whether a name that ends in ``state`` matches."""
        return bool(state & self._ends)
