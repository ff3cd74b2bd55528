"""Claims of `toolcell.model`: units, agreement of a result's fields, digests, JSON both ways."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel, ValidationError

from toolcell import model
from toolcell.model import (
    STATUS_OF,
    ApprovalRequest,
    ApprovalResponse,
    Captured,
    Category,
    CellSettings,
    Enforcement,
    ErrorInfo,
    Identity,
    Limits,
    Mount,
    Plan,
    PreparedToolCall,
    Report,
    ResultMetadata,
    Status,
    ToolAnnotations,
    ToolCall,
    Truncation,
    Usage,
    canonical_json,
    digest_of,
)
from toolcell.model.base import parse_duration, parse_size
from toolcell.registry import define

from .samples import ASK, greet, inline, prepared, result, schema_tool

NOW = datetime(2030, 1, 1, tzinfo=UTC)


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
        "approval_spent approval_mismatch overloaded"
    )
    failed = (
        "tool_error exception exit_code signal memory cpu processes disk output_limit "
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
        "[failed: exit_code] it exited with code 1. look above. "
        "(trying the same call again will not help)",
    ]


def test_the_model_is_told_when_a_retry_can_help():
    error = {"category": "worker_lost", "message": "lost", "retryable": True}
    text = result(status="failed", success=False, error=error).for_llm()
    assert "the same call may succeed if tried again" in text


def test_runtime_facts_are_kept_from_the_model():
    text = result(metadata={"peak_memory": 123456, "cpu_seconds": 7.25, "rule_id": "r"}).for_llm()
    assert text == "(no output)"


def test_canonical_json_has_one_form():
    assert canonical_json({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_the_digest_covers_what_would_run():
    def other(name: str, times: int = 1) -> str: ...

    def wider(name: str, times: int = 1, loud: bool = False) -> str: ...

    base = prepared(define(greet), name="Ada")
    calls = [base, prepared(define(greet), name="Bo"), prepared(define(greet), name="Ada", times=2)]
    calls += [prepared(inline(other), name="Ada"), prepared(inline(wider), name="Ada")]
    moved = base.definition.handler.model_copy(update={"function": "elsewhere"})
    definition = base.definition.model_copy(update={"handler": moved})
    calls.append(prepared(definition, name="Ada"))
    assert len({call.digest for call in calls}) == len(calls)


def test_the_digest_does_not_cover_whose_call_it_is_or_how_it_was_written():
    base = prepared(define(greet), name="Ada")
    written = prepared(define(greet), times=1, name="Ada")
    another = PreparedToolCall.of(
        ToolCall(call_id="other", name="greet", arguments='{"name":"Ada"}'),
        base.definition,
        base.arguments,
    )
    assert base.digest == written.digest == another.digest


def test_a_call_keeps_its_id_and_its_arguments_as_they_were_sent():
    call = ToolCall(call_id="toolu_01/é ", name="x", arguments="{ not json")
    assert (call.call_id, call.arguments) == ("toolu_01/é ", "{ not json")


IDENTITY = Identity(inside_uid=1, inside_gid=1, outer_uid=2, outer_gid=2)
EXAMPLES: list[BaseModel] = [
    ToolCall(call_id="1", name="x", arguments={"a": [1, None]}),
    define(greet).spec,
    define(greet).handler,
    ToolAnnotations(read_only=True),
    schema_tool({"type": "object"}),
    prepared(schema_tool({"type": "object"}), a=1),
    ASK,
    ApprovalRequest(
        approval_id="a",
        call=ToolCall(call_id="1", name="x"),
        digest="d",
        policy_version="v",
        reason="r",
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    ),
    ApprovalResponse(approval_id="a", approved=True, by="Ada"),
    ErrorInfo(category=Category.WALL, message="m"),
    ResultMetadata(stderr="e"),
    result(structured={"a": [1, 2.5, None]}, output="é😀"),
    Truncation(total_bytes=9, total_lines=1, omitted_bytes=1, omitted_lines=0),
    Captured(head=b"a", tail="é".encode(), total_bytes=9),
    Usage(cpu_seconds=0.5, peak_memory=1),
    Report(exit=-9, killed="wall", reply={"a": 1}),
    Limits(),
    CellSettings(env={"A": "b"}),
    Enforcement(rung="full", required=("network",), enforced={"network": "m"}),
    IDENTITY,
    Mount(source="/a", target="/b"),
    Plan(
        identity=IDENTITY,
        mounts=(Mount(source="/a", target="/b"),),
        files={},
        links={},
        environment={},
        network="none",
        directory="/tmp",
        python_path=(),
        limits=Limits(),
        enforcement=Enforcement(),
    ),
]


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: type(value).__name__)
def test_every_model_is_frozen_closed_and_survives_json(value):
    again = type(value).model_validate_json(value.model_dump_json())
    assert again == value
    with pytest.raises(ValidationError):
        type(value).model_validate(value.model_dump() | {"unknown_field": 1})
    with pytest.raises(ValidationError):
        setattr(value, next(iter(type(value).model_fields)), None)


def test_the_examples_above_are_all_the_models_there_are():
    public = [getattr(model, name) for name in model.__all__]
    models = {kind for kind in public if isinstance(kind, type) and issubclass(kind, BaseModel)}
    assert models == {type(value) for value in EXAMPLES}


def test_what_is_stored_or_sent_carries_its_version():
    for value in EXAMPLES:
        if "v" in type(value).model_fields:
            assert json.loads(value.model_dump_json())["v"] == 1
