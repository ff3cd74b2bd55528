"""Claims of `toolcell.model`: units, results whose fields agree, and text that helps a model."""

import pytest
from pydantic import ValidationError

from toolcell.model import STATUS_OF, Category, ErrorInfo, Limits, Status
from toolcell.model.base import parse_duration, parse_size

from .samples import result


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("512B", 512),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("512MiB", 512 * 1024**2),
        ("2GB", 2_000_000_000),
        (" 1.5 GiB ", 3 * 1024**3 // 2),
        ("1TiB", 1024**4),
        (77, 77),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("2m", 120), ("2min", 120), ("1h", 3600), ("1.5 s", 1.5), (3, 3)],
)
def test_durations_are_read_as_people_write_them(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "12", "MiB", "-1MiB", "1 mib", "1e3B", "1MiBs", "1,5GB"])
def test_a_size_without_a_known_unit_is_refused(text):
    with pytest.raises(ValueError, match="expected a size such as"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "12", "s", "-1s", "1 day", "1e3s", "1s2s"])
def test_a_duration_without_a_known_unit_is_refused(text):
    with pytest.raises(ValueError, match="expected a duration such as"):
        parse_duration(text)


@pytest.mark.parametrize(
    "limit", [{"wall": 0}, {"memory": "1MiB"}, {"processes": 0}, {"grace": 31}, {"unknown": 1}]
)
def test_a_limit_out_of_bounds_is_refused(limit):
    with pytest.raises(ValidationError):
        Limits.model_validate(limit)


def test_every_category_has_the_status_that_the_design_gives_it():
    rejected = (
        "unknown_tool invalid_arguments policy_denied approval_denied approval_expired "
        "approval_spent approval_mismatch overloaded budget_spent"
    )
    failed = (
        "tool_error exception exit_code signal memory cpu processes disk open_files "
        "output_limit "
        "sandbox_violation bad_reply worker_lost cell_setup"
    )
    expected = {Category(name): Status.REJECTED for name in rejected.split()}
    expected |= {Category(name): Status.FAILED for name in failed.split()}
    expected |= {Category.WALL: Status.TIMED_OUT, Category.CANCELLED: Status.CANCELLED}
    assert expected == STATUS_OF
    assert set(STATUS_OF) == set(Category)


@pytest.mark.parametrize(
    "changes",
    [
        {"success": False},
        {"status": "failed", "error": {"category": "exception", "message": "m"}},
        {"status": "failed", "success": False},
        {"error": {"category": "exception", "message": "m"}},
        {"status": "rejected", "success": False, "error": {"category": "wall", "message": "m"}},
        {"status": "waiting"},
    ],
)
def test_a_result_whose_fields_disagree_cannot_be_made(changes):
    with pytest.raises(ValidationError):
        result(**changes)


def test_an_error_always_has_a_message():
    with pytest.raises(ValidationError):
        ErrorInfo(category=Category.EXCEPTION, message="")


def test_the_model_reads_the_output_of_a_success_and_the_end_of_its_stderr():
    text = result(
        output="42\n", metadata={"stderr": "".join(f"warning {n}\n" for n in range(9))}
    ).for_llm()
    assert text.startswith("42\n[stderr, last 5 of 9 lines]\nwarning 4\n")
    assert text.endswith("warning 8")


def test_of_the_errors_of_a_failure_the_first_and_the_last_are_shown():
    errors = "".join(f"error {n}\n" for n in range(100))
    error = ErrorInfo(category=Category.EXIT_CODE, message="the process exited with code 1")
    text = result(
        status="failed", success=False, error=error, metadata={"stderr": errors}
    ).for_llm()
    assert text.startswith("[stderr, first 20 and last 40 of 100 lines]\nerror 0\n")
    assert "error 19\n[...]\nerror 60\n" in text
    assert "error 99\n[failed: exit_code" in text


def test_a_success_without_output_says_so():
    assert result().for_llm() == "(no output)"


def test_the_model_reads_on_failure_the_output_the_cause_and_whether_to_retry():
    text = result(
        status="failed",
        success=False,
        output="1 failed, 3 passed",
        error={"category": "exit_code", "message": "it exited with code 1", "hint": "look above"},
        return_code=1,
        metadata={"stdout": "printed", "stderr": "oops"},
    ).for_llm()
    assert text.splitlines() == [
        "1 failed, 3 passed",
        "[printed]",
        "printed",
        "[stderr]",
        "oops",
        "[failed: exit_code, repeating it is unlikely to help] it exited with code 1",
        "Hint: look above",
    ]


def test_the_model_is_told_when_a_retry_can_help():
    error = {"category": "worker_lost", "message": "lost", "retryable": True}
    text = result(status="failed", success=False, error=error).for_llm()
    assert text == "[failed: worker_lost, repeating it may help] lost"
    tried = result(status="failed", success=False, error=error, metadata={"attempts": 3})
    assert tried.for_llm().startswith("[failed: worker_lost, tried 3 times, repeating it may help]")


def test_a_message_and_a_hint_reach_the_model_as_they_are_and_never_run_on():
    error = {"category": "tool_error", "message": "near it:\n  x = 1\n", "hint": "list_files shows"}
    text = result(status="failed", success=False, error=error).for_llm()
    assert text == (
        "[failed: tool_error, repeating it is unlikely to help] near it:\n  x = 1\n"
        "Hint: list_files shows"
    )


def test_what_was_cancelled_is_told_without_advice():
    error = {"category": "cancelled", "message": "the call was cancelled"}
    text = result(status="cancelled", success=False, error=error).for_llm()
    assert text == "[cancelled] the call was cancelled"


def test_runtime_facts_are_kept_from_the_model():
    text = result(metadata={"peak_memory": 123456, "cpu_seconds": 7.25, "rule_id": "r"}).for_llm()
    assert text == "(no output)"
