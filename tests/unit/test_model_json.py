"""Claims of `toolcell.model` on its way out: one canonical form, digests, JSON both ways."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel, ValidationError

from toolcell import model
from toolcell.model import (
    Approval,
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    Artifact,
    Budget,
    Captured,
    Category,
    CellSettings,
    Enforcement,
    ErrorInfo,
    FileChange,
    Identity,
    Kept,
    LeftFiles,
    Limits,
    Mount,
    Plan,
    PreparedToolCall,
    RefusedArtifact,
    Report,
    ResultMetadata,
    Ruleset,
    RunGrant,
    SessionFacts,
    SessionOutcome,
    Spent,
    ToolAnnotations,
    ToolCall,
    Truncation,
    Usage,
    WaitingInfo,
    canonical_json,
    digest_of,
)
from toolcell.registry import define

from .samples import ASK, greet, inline, prepared, result, schema_tool

NOW = datetime(2030, 1, 1, tzinfo=UTC)


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
QUESTION = ApprovalRequest(
    approval_id="a",
    call=ToolCall(call_id="1", name="x"),
    digest="d",
    policy_version="v",
    reason="r",
    created_at=NOW,
    expires_at=NOW + timedelta(hours=1),
)
ARTIFACT = Artifact(handle="art-a", name="a.png", media_type="image/png", size=3, sha256="0")
EXAMPLES: list[BaseModel] = [
    ToolCall(call_id="1", name="x", arguments={"a": [1, None]}),
    define(greet).spec,
    define(greet).handler,
    ToolAnnotations(read_only=True),
    schema_tool({"type": "object"}),
    prepared(schema_tool({"type": "object"}), a=1),
    ASK,
    QUESTION,
    ApprovalResponse(approval_id="a", approved=True, by="Ada"),
    Approval(request=QUESTION, state=ApprovalState.DENIED, by="Ada", note="no", answered_at=NOW),
    RunGrant(
        grant_id="g",
        run="r",
        tool_name="shell",
        prefix=("git", "push"),
        policy_version="v",
        by="Ada",
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    ),
    ErrorInfo(category=Category.WALL, message="m"),
    ResultMetadata(stderr="e"),
    result(structured={"a": [1, 2.5, None]}, output="é😀"),
    Budget(calls=3, seconds=1.5),
    Spent(calls=1, seconds=0.5, output_bytes=9),
    WaitingInfo(state="queued", handle="job-17", note="later", poll="check"),
    Truncation(total_bytes=9, total_lines=1, omitted_bytes=1, omitted_lines=0),
    Captured(head=b"\xff\0", tail="é".encode(), total_bytes=9),
    Kept(handle="out-aaaaaaaaaaaaa", size=9, sha256="0", lost="the disk is full"),
    Usage(cpu_seconds=0.5, peak_memory=1),
    ARTIFACT,
    RefusedArtifact(name="pipe", reason="it is a pipe"),
    FileChange(path="a", kind="changed", size_before=1, size=2),
    LeftFiles(artifacts=(ARTIFACT,), changes_note="not known"),
    Report(exit=-9, killed="wall", reply={"a": 1}),
    Limits(),
    CellSettings(env={"A": "b"}),
    Enforcement(rung="full", required=("network",), enforced={"network": "m"}),
    IDENTITY,
    SessionFacts(state="lost", ended="it was killed"),
    SessionOutcome(state="kept", earlier="late"),
    Mount(source="/a", target="/b"),
    Ruleset(files=1, tcp=0, scopes=0, rules=(("/", 1),)),
    Plan(
        rung="full",
        identity=IDENTITY,
        mounts=(Mount(source="/a", target="/b"),),
        files={},
        links={},
        environment={},
        network="none",
        directory="/tmp",
        python_path=(),
        python_prefix="/usr",
        preload=("json",),
        preload_path=("/usr/lib/python3",),
        hidden=("/venv/pip.conf",),
        seccomp="06000000",
        seccomp_silent="06000000",
        scratch=None,
        landlock=Ruleset(files=1, tcp=0, scopes=0, rules=(("/", 1),)),
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
