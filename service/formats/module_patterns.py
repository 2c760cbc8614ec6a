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
"""Most elements of one expression."""
_DEEPEST: Final = 20
MATCHED: Final = -1
"""State after a match that no further character undoes."""

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
    """A pattern that is not supported."""


class PatternElement(NamedTuple):
    """A character of a set, possibly absent (``optional``) or repeated (``repeats``)."""

    chars: frozenset[str]
    optional: bool = False
    repeats: bool = False


_LITERALS: Final = {char: PatternElement(frozenset(char)) for char in _ASCII}
"""One element for each character, shared so that a stored pattern takes little memory."""
_ANY_ONE: Final = PatternElement(_ASCII)
_ANY_NUMBER: Final = PatternElement(_ASCII, optional=True, repeats=True)
_ANY_BUT_A_LINE: Final = PatternElement(_ANY)
_NEVER: Final = PatternElement(frozenset())
"""Element for characters that occur in no module's name."""


class _Anchor(Enum):
    START = "start"
    END = "end"


class PatternEnd(Enum):
    """Position at which a name may end after a pattern."""

    ANYWHERE = "anywhere"
    AT_THE_END = "at the end"
    AT_A_MODULE = "at the end of a module's name"


class PatternSequence(NamedTuple):
    """Elements in sequence, from the beginning of a name."""

    elements: tuple[PatternElement, ...]
    accepts: PatternEnd


_PatternPart = PatternElement | _Anchor
_ParsedPattern = list[_PatternPart]
"""One branch of a pattern, with its alternatives written out."""


@lru_cache(maxsize=128)
def parse_glob(text: str) -> tuple[PatternSequence, ...]:
    """A glob of a module and of all below it."""
    elements: list[PatternElement] = []
    place = 0
    while place < len(text):
        char, place = text[place], place + 1
        match char:
            case "*":
                elements.append(_ANY_NUMBER)
            case "?":
                elements.append(_ANY_ONE)
            case "[" if (end := text.find("]", place + 1 + (text[place : place + 1] == "!"))) > 0:
                elements.append(PatternElement(_parse_glob_class(text[place:end])))
                place = end + 1
            case _:
                elements.append(_LITERALS.get(char, _NEVER))
    return (PatternSequence(tuple(elements), PatternEnd.AT_A_MODULE),)


def _parse_glob_class(inner: str) -> frozenset[str]:
    negated = inner.startswith("!")
    chars = _expand_ranges(list(inner.removeprefix("!")))
    return _ASCII - chars if negated else chars


def _expand_ranges(items: list[str]) -> frozenset[str]:
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
def parse_expression(text: str) -> tuple[PatternSequence, ...]:
    """Parses an expression that a name begins with; raises :class:`PatternError` if it is not supported."""
    if len(text) > LONGEST_EXPRESSION:
        raise PatternError(f"is longer than {LONGEST_EXPRESSION} characters")
    return tuple(map(_build_sequence, _PatternParser(text).parse()))


def _build_sequence(written: _ParsedPattern) -> PatternSequence:
    """Removes the anchors, which are only allowed at the ends."""
    while written and written[0] is _Anchor.START:
        written = written[1:]
    accepts = PatternEnd.ANYWHERE
    while written and written[-1] is _Anchor.END:
        written, accepts = written[:-1], PatternEnd.AT_THE_END
    elements = tuple(part for part in written if isinstance(part, PatternElement))
    if len(elements) < len(written):
        raise PatternError("has ^ or $ elsewhere than at an end")
    return PatternSequence(elements, accepts)


class _PatternParser:
    """Parses an expression from left to right into its branches."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def parse(self) -> list[_ParsedPattern]:
        """Returns the branches of the whole expression."""
        ways = self._parse_alternatives(0)
        if self._place < len(self._text):
            raise PatternError("closes a group that is not open")
        return ways

    def _peek_char(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take_char(self) -> str:
        char = self._peek_char()
        if not char:
            raise PatternError("ends too early")
        self._place += 1
        return char

    def _parse_alternatives(self, depth: int) -> list[_ParsedPattern]:
        if depth > _DEEPEST:
            raise PatternError(f"nests more than {_DEEPEST} groups")
        ways = self._parse_branch(depth)
        while self._peek_char() == "|":
            self._place += 1
            ways += self._parse_branch(depth)
        return _check_size(ways)

    def _parse_branch(self, depth: int) -> list[_ParsedPattern]:
        ways: list[_ParsedPattern] = [[]]
        while self._peek_char() not in ("", "|", ")"):
            parts = self._apply_quantifier(self._parse_atom(depth))
            _check_pair_count(ways, parts)
            ways = _check_size([[*before, *after] for before, after in product(ways, parts)])
        return ways

    def _parse_atom(self, depth: int) -> list[_ParsedPattern]:
        match char := self._take_char():
            case "(":
                return self._parse_group(depth)
            case "[":
                return [[PatternElement(self._parse_class())]]
            case "^" | "$":
                return [[_Anchor.START if char == "^" else _Anchor.END]]
            case "\\":
                return [[self._parse_escape()]]
            case "*" | "+" | "?" | "{":
                raise PatternError("repeats nothing, or what is repeated already")
            case _:
                return [[_ANY_BUT_A_LINE if char == "." else _LITERALS.get(char, _NEVER)]]

    def _parse_group(self, depth: int) -> list[_ParsedPattern]:
        if self._peek_char() == "?":
            named = re.compile(r"\?(?::|P<\w{1,50}>)").match(self._text, self._place)
            if not named:
                raise PatternError("has a group that is none of alternatives")
            self._place = named.end()
        ways = self._parse_alternatives(depth + 1)
        if self._peek_char() != ")":
            raise PatternError("does not close a group")
        self._place += 1
        return ways

    def _parse_escape(self) -> _PatternPart:
        char = self._take_char()
        if char in "AZ":
            return _Anchor.START if char == "A" else _Anchor.END
        return PatternElement(_resolve_escape(char))

    def _parse_class(self) -> frozenset[str]:
        negated = self._peek_char() == "^"
        self._place += negated
        items: list[str] = []
        whole: frozenset[str] = frozenset()
        while (char := self._take_char()) != "]" or not (items or whole):
            if char == "\\":
                whole |= _resolve_escape(self._take_char())
            else:
                items.append(char)
        chars = _expand_ranges(items) | whole
        return _ASCII - chars if negated else chars

    def _apply_quantifier(self, ways: list[_ParsedPattern]) -> list[_ParsedPattern]:
        bounds = self._parse_bounds()
        if bounds is None:
            return ways
        elements = [way[0] for way in ways if len(way) == 1 and isinstance(way[0], PatternElement)]
        once = len(elements) == len(ways) and not any(one.optional or one.repeats for one in elements)
        if once:
            chars = frozenset[str]().union(*(one.chars for one in elements))
            return [_repeat_chars(chars, *bounds)]
        if bounds == (0, 1):
            return [*ways, []]
        raise PatternError("repeats a group of more than one character, or what is repeated already")

    def _parse_bounds(self) -> tuple[int, int | None] | None:
        """The least and the most of a quantifier, which may be lazy: it matches the same names."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        found: tuple[int, int | None] | None = simple.get(self._peek_char())
        if found:
            self._place += 1
        elif self._peek_char() == "{":
            found = self._parse_counted_bounds()
        if found and self._peek_char() == "?":
            self._place += 1
        if found and self._peek_char() in ("*", "+", "{", "?"):
            raise PatternError("repeats what is repeated already")
        return found

    def _parse_counted_bounds(self) -> tuple[int, int | None]:
        match = _COUNTED.match(self._text, self._place)
        if not match or not (match[1] or match[3]):
            raise PatternError("has a brace that counts nothing")
        self._place = match.end()
        least = int(match[1] or 0)
        most = (int(match[3]) if match[3] else None) if match[2] else least
        if most is not None and most < least:
            raise PatternError("has a brace that counts nothing")
        return least, most


def _repeat_chars(chars: frozenset[str], least: int, most: int | None) -> _ParsedPattern:
    if most is None:
        once = [PatternElement(chars)] * (least - 1)
        return [*once, PatternElement(chars, optional=not least, repeats=True)]
    return [*[PatternElement(chars)] * least, *[PatternElement(chars, optional=True)] * (most - least)]


def _resolve_escape(char: str) -> frozenset[str]:
    """Returns the characters of an escape after its backslash."""
    if char in _CLASSES:
        return _CLASSES[char]
    if char.isascii() and char.isalnum():
        raise PatternError("has an escape that is not read here")
    return frozenset(char)


def _check_size(ways: list[_ParsedPattern]) -> list[_ParsedPattern]:
    if sum(map(len, ways)) + len(ways) > _MOST_WRITTEN_OUT:
        raise PatternError("has too many alternatives")
    return ways


def _check_pair_count(first: list[_ParsedPattern], second: list[_ParsedPattern]) -> None:
    if len(first) * len(second) > _MOST_WRITTEN_OUT:
        raise PatternError("has too many alternatives")


def count_elements(sequences: Iterable[PatternSequence]) -> int:
    """Returns the cost of a list of patterns per character of a name."""
    return sum(len(sequence.elements) + 1 for sequence in sequences)


class PatternSet:
    """Patterns that run side by side; a state is the set of positions that they have reached.

    Bit ``i`` of a state means that the elements of a sequence up to the ``i``-th have matched; every sequence
    has a bit in front of its first element.
    """

    def __init__(self, sequences: Iterable[PatternSequence]) -> None:
        self._behind: dict[frozenset[str], int] = {}
        """Positions after the elements, by their characters."""
        self._again = 0
        self._optional = 0
        self._accepting = dict.fromkeys(PatternEnd, 0)
        starts, place = 0, 0
        for sequence in sequences:
            starts |= 1 << place
            place = self._add_sequence(sequence, place)
        self._fitting: dict[str, int] = {}
        """Positions after an element that a character matches."""
        for chars, places in self._behind.items():
            for char in chars:
                self._fitting[char] = self._fitting.get(char, 0) | places
        runs = self._optional
        self._run_starts = ~runs & (runs >> 1)
        self._run_ends = runs & ~(runs >> 1)
        self.start = self._skip_optional(starts)
        self._ends = self._accepting[PatternEnd.ANYWHERE] | self._accepting[PatternEnd.AT_THE_END]
        self._ends |= self._accepting[PatternEnd.AT_A_MODULE]

    def _add_sequence(self, sequence: PatternSequence, place: int) -> int:
        """Adds a sequence whose first bit is ``place``, and returns that of the next."""
        for element in sequence.elements:
            place += 1
            bit = 1 << place
            self._behind[element.chars] = self._behind.get(element.chars, 0) | bit
            self._again |= bit * element.repeats
            self._optional |= bit * element.optional
        self._accepting[sequence.accepts] |= 1 << place
        return place + 1

    def _skip_optional(self, state: int) -> int:
        """The state with optional elements left out behind it, all of a run in one subtraction."""
        reached = state | self._run_ends
        return state | (self._optional & ~((reached - self._run_starts) ^ reached))

    def advance_state(self, state: int, text: str) -> int:
        """Returns the state after ``text``; ``MATCHED`` if a pattern has matched, 0 if none can."""
        anywhere, module = self._accepting[PatternEnd.ANYWHERE], self._accepting[PatternEnd.AT_A_MODULE]
        for char in text:
            if state == MATCHED or state & anywhere or (char == "." and state & module):
                return MATCHED
            if not state:
                return 0
            fits = self._fitting.get(char, 0)
            state = self._skip_optional((state << 1 | state & self._again) & fits)
        return state

    def is_match(self, state: int) -> bool:
        """Returns true if a name that ends in ``state`` matches."""
        return bool(state & self._ends)
