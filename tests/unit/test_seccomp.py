"""The search tree that a filter is compiled to, for policies larger than the real one."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from toolcell.cells import seccomp
from toolcell.cells.seccomp import ALLOW, KILL, MISSING, REFUSE, Guard, Instruction

_GUARD = Guard(tuple(((seccomp.Test(0, "is", value),), REFUSE) for value in range(40)))


def _walk(program: list[Instruction], number: int) -> tuple[int, int | None]:
    """Follow a program for a number and arguments of 0; returns the answer and the last load."""
    place, loaded, value = 0, None, number
    while True:
        step = program[place]
        place += 1
        if step.code == seccomp._RETURN:
            return step.value, loaded
        if step.code == seccomp._LOAD:
            loaded, value = step.value, 0
        elif step.code == seccomp._JUMP:
            place += step.value
        else:
            holds = {
                seccomp._EQUAL: value == step.value,
                seccomp._AT_LEAST: value >= step.value,
                seccomp._ANY_BIT: value & step.value != 0,
            }[step.code]
            place += step.jump_true if holds else step.jump_false


@given(st.dictionaries(st.integers(0, 600), st.sampled_from([ALLOW, KILL, REFUSE, 7]), min_size=1))
def test_every_number_finds_its_answer(answers: dict[int, int]) -> None:
    program = seccomp._tree(seccomp._ranges(dict(answers)))
    for number in (*range(max(answers) + 3), 1 << 30, 0xFFFFFFFF):
        assert _walk(program, number) == (answers.get(number, MISSING), None)


def test_a_jump_too_far_for_one_byte_is_made_in_two() -> None:
    answers: dict[int, int | Guard] = {
        number: _GUARD if number % 2 else ALLOW for number in range(40)
    }
    program = seccomp._tree(seccomp._ranges(answers))
    far = [step for step in program if step.code == seccomp._JUMP]
    assert far, "this policy is large enough"
    assert all(step.value > 255 for step in far)
    for number in range(40):
        wanted = (REFUSE, 16) if number % 2 else (ALLOW, None)
        assert _walk(program, number) == wanted
    assert _walk(program, 40) == (MISSING, None)
    for step in program:
        struct.pack("=HBBI", *step)  # every jump fits its field


def test_neighbours_with_one_answer_are_one_range() -> None:
    answers: dict[int, int | Guard] = {0: ALLOW, 1: ALLOW, 2: REFUSE, 5: _GUARD, 6: _GUARD}
    assert seccomp._ranges(answers) == [
        (0, ALLOW),
        (2, REFUSE),
        (3, MISSING),
        (5, _GUARD),
        (7, MISSING),
    ]


def test_all_tests_of_a_rule_have_to_hold_and_the_first_rule_decides() -> None:
    both = (seccomp.Test(0, "is", 0), seccomp.Test(1, "any", 1))
    guard = Guard(((both, KILL), ((seccomp.Test(1, "is", 0),), REFUSE)), otherwise=7)
    program = seccomp._leaf(guard)
    # Arguments are 0: the first rule's second test fails, and its answer is skipped.
    assert _walk(program, 0) == (REFUSE, 24)
