"""A classic BPF machine for seccomp programs: what would the kernel answer, without asking it.

It knows the opcodes that such programs need, and refuses the rest, as it refuses what the
kernel's verifier refuses (net/core/filter.c, kernel/seccomp.c): jumps that leave the program,
loads outside of struct seccomp_data, more than 4096 instructions, a way past the end.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
JUMP = 0x05  # BPF_JMP | BPF_JA
EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
ABOVE = 0x25  # BPF_JMP | BPF_JGT | BPF_K
AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

_CONDITIONS = {
    EQUAL: lambda a, k: a == k,
    ABOVE: lambda a, k: a > k,
    AT_LEAST: lambda a, k: a >= k,
    ANY_BIT: lambda a, k: a & k != 0,
}
_LONGEST = 4096  # BPF_MAXINSNS
_RECORD = struct.Struct("<HBBI")  # struct sock_filter
_DATA = struct.Struct("<IIQ6Q")  # struct seccomp_data


class BadProgramError(Exception):
    """A program that the kernel would not take, or that this machine does not know."""


class Step(NamedTuple):
    """One struct sock_filter."""

    code: int
    true: int
    false: int
    k: int


@dataclass(frozen=True)
class Answer:
    """The action that a program returned, and how many instructions that took."""

    action: int
    steps: int


def data(number: int, arch: int, *args: int, pointer: int = 0) -> bytes:
    """Build a struct seccomp_data; arguments that are not given are 0."""
    return _DATA.pack(number, arch, pointer, *args, *[0] * (6 - len(args)))


class Program:
    """A checked program; raises BadProgramError for one that could do anything unknown."""

    def __init__(self, code: bytes) -> None:
        if len(code) % _RECORD.size:
            raise BadProgramError("not a whole number of instructions")
        self.steps = [Step(*fields) for fields in _RECORD.iter_unpack(code)]
        if not 0 < len(self.steps) <= _LONGEST:
            raise BadProgramError(f"{len(self.steps)} instructions")
        for place, step in enumerate(self.steps):
            self._check(place, step)

    def _check(self, place: int, step: Step) -> None:
        if step.code == LOAD and (step.k % 4 or step.k > _DATA.size - 4):
            raise BadProgramError(f"{place}: loads at {step.k}")
        # Offsets have no sign: one that is meant to go back is far past the end.
        for target in self.following(place):
            if target >= len(self.steps):
                raise BadProgramError(f"{place}: goes on at {target}, outside of the program")

    def following(self, place: int) -> list[int]:
        """The instructions that may come after one; none after a return."""
        step = self.steps[place]
        if step.code in _CONDITIONS:
            return [place + 1 + step.true, place + 1 + step.false]
        if step.code == JUMP:
            return [place + 1 + step.k]
        if step.code in (LOAD, AND):
            return [place + 1]
        if step.code == RETURN:
            return []
        raise BadProgramError(f"{place}: unknown opcode {step.code:#x}")

    def run(self, seccomp_data: bytes) -> Answer:
        """Run on one struct seccomp_data."""
        if len(seccomp_data) != _DATA.size:
            raise ValueError("not a struct seccomp_data")
        accumulator = place = count = 0
        while True:
            step = self.steps[place]
            count += 1
            place += 1
            if step.code == RETURN:
                return Answer(step.k, count)
            if step.code == LOAD:
                (accumulator,) = struct.unpack_from("<I", seccomp_data, step.k)
            elif step.code == AND:
                accumulator &= step.k
            elif step.code == JUMP:
                place += step.k
            else:
                holds = _CONDITIONS[step.code](accumulator, step.k)
                place += step.true if holds else step.false

    def longest(self) -> int:
        """The most instructions that any input can make it run."""
        most = [0] * len(self.steps)
        for place in reversed(range(len(self.steps))):  # jumps only go forward
            most[place] = 1 + max((most[after] for after in self.following(place)), default=0)
        return most[0]

    def loads(self) -> set[int]:
        """The offsets into struct seccomp_data that it ever looks at."""
        return {step.k for step in self.steps if step.code == LOAD}

    def returns(self) -> set[int]:
        """The actions that it can answer."""
        return {step.k for step in self.steps if step.code == RETURN}

    def reached(self) -> set[int]:
        """The instructions that some way leads to."""
        found = {0}
        for place in range(len(self.steps)):
            if place in found:
                found.update(self.following(place))
        return found
