"""Claims of `toolcell.grants`: one run of one digest, and a wish to end that is never lost."""

import pytest

from toolcell.cancellation import Cancellation
from toolcell.errors import GrantError
from toolcell.grants import Grant, RunOptions
from toolcell.model import CellSettings, Limits
from toolcell.normalizer import Origin
from toolcell.registry import define

from .samples import greet, prepared


def call(name="Ada"):
    return prepared(define(greet), name=name)


def grant(of):
    return Grant(of.digest, Origin(of.call), CellSettings(), Limits())


def test_a_grant_is_spent_once():
    once = grant(call())
    once.spend(call())
    with pytest.raises(GrantError, match="has been spent"):
        once.spend(call())


def test_a_grant_of_another_call_is_refused_and_not_spent_by_it():
    once = grant(call())
    with pytest.raises(GrantError, match="another prepared call"):
        once.spend(call("Bob"))
    once.spend(call())


def test_a_spent_grant_does_not_tell_more_to_another_call():
    once = grant(call())
    once.spend(call())
    with pytest.raises(GrantError, match="another prepared call"):
        once.spend(call("Bob"))


def test_a_grant_cannot_be_made_spent_or_be_given_more_fields():
    with pytest.raises(TypeError):
        Grant(call().digest, Origin(call().call), CellSettings(), Limits(), spent=True)
    with pytest.raises(AttributeError):
        grant(call()).free = True


@pytest.mark.parametrize(("moment", "ended"), [("before", 0), ("while", 1), ("after", 0)])
def test_a_request_ends_what_runs_and_is_kept_whenever_it_comes(moment, ended):
    ends = []
    cancellation = Cancellation()
    if moment == "before":
        cancellation.request()
    with cancellation.ends(lambda: ends.append(moment)):
        assert cancellation.requested is (moment == "before")
        if moment == "while":
            cancellation.request()
    if moment == "after":
        cancellation.request()
    assert cancellation.requested
    assert len(ends) == ended


def test_what_ended_with_an_error_is_not_ended_again():
    ends = []
    cancellation = Cancellation()
    with pytest.raises(KeyError), cancellation.ends(lambda: ends.append(1)):
        raise KeyError
    cancellation.request()
    assert ends == []


def test_a_second_attempt_can_be_ended_as_the_first_could():
    ends = []
    cancellation = Cancellation()
    for attempt in (1, 2):
        with cancellation.ends(lambda attempt=attempt: ends.append(attempt)):
            if attempt == 2:
                cancellation.request()
    assert ends == [2]


def test_two_cancellations_are_never_the_same_one():
    assert Cancellation() != Cancellation()
    assert len({Cancellation(), Cancellation()}) == 2


def test_a_host_adds_nothing_unless_it_says_so():
    assert RunOptions() == RunOptions(stdin=None, tap=None)
