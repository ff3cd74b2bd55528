"""Claims of `toolcell.normalizer`: text never cut inside a character, one cause, one category."""

import json

import pytest

from toolcell.cells.capture import StreamCapture
from toolcell.legible import characters as text
from toolcell.model import (
    STATUS_OF,
    Captured,
    Category,
    Enforcement,
    ErrorInfo,
    Limits,
    Report,
    Status,
    Truncation,
    Usage,
)
from toolcell.normalizer import Origin, from_inline, from_report, refused
from toolcell.normalizer.truncation import shorten, shorten_text
from toolcell.normalizer.verdict import judge, signal_name, signal_number
from toolcell.redaction import Redactor, no_redaction
from toolcell.registry import ToolRegistry, define

from .samples import greet, prepared, schema_tool

CALL = prepared(define(greet), name="Ada").call
BY_VALUE = schema_tool({})
BY_EXIT = schema_tool({}).model_copy(update={"answers": "exit"})
ENFORCED = Enforcement(rung="full", enforced={"network": "a namespace"})


def captured(data: bytes) -> Captured:
    return Captured(head=data, total_bytes=len(data), total_lines=data.count(b"\n"))


def outcome(definition=BY_VALUE, budget=1000, **fields):
    report = Report.model_validate(fields)
    return from_report(
        Origin(CALL), report, definition, Limits(), ENFORCED, wall=30.0, attempts=1, budget=budget
    )


def error(kind, message="m", name="N", hint=""):
    told = {"kind": kind, "name": name, "message": message, "hint": hint}
    return {"type": "error", "retryable": False} | told


VALUE = {"type": "reply", "value": 1}
VERDICTS = [
    ({"exit": 0, "reply": VALUE}, BY_VALUE, None),
    ({"exit": 0}, BY_EXIT, None),
    ({"setup": "no walls", "remedy": "build some"}, BY_VALUE, Category.CELL_SETUP),
    ({"exit": None}, BY_VALUE, Category.WORKER_LOST),
    ({"exit": 0}, BY_VALUE, Category.WORKER_LOST),
    ({"exit": 0, "bad_reply": "a second answer"}, BY_VALUE, Category.BAD_REPLY),
    ({"exit": 0, "reply": error("bad_reply")}, BY_VALUE, Category.BAD_REPLY),
    ({"exit": 0, "reply": error("tool_error")}, BY_VALUE, Category.TOOL_ERROR),
    ({"exit": 0, "reply": error("exception")}, BY_VALUE, Category.EXCEPTION),
    ({"exit": 0, "reply": error("memory")}, BY_VALUE, Category.MEMORY),
    ({"exit": 3}, BY_EXIT, Category.EXIT_CODE),
    ({"exit": 3, "reply": VALUE}, BY_VALUE, Category.EXIT_CODE),
    ({"exit": -11}, BY_EXIT, Category.SIGNAL),
    ({"exit": -9}, BY_VALUE, Category.SIGNAL),
    ({"exit": -24}, BY_VALUE, Category.CPU),
    ({"exit": -9, "usage": Usage(cpu_seconds=60, peak_memory=1)}, BY_EXIT, Category.CPU),
    ({"exit": -25}, BY_EXIT, Category.DISK),
    ({"killed": "wall"}, BY_VALUE, Category.WALL),
    ({"killed": "cancel"}, BY_VALUE, Category.CANCELLED),
    ({"killed": "output"}, BY_VALUE, Category.OUTPUT_LIMIT),
    ({"killed": "memory"}, BY_VALUE, Category.MEMORY),
    ({"killed": "cpu"}, BY_VALUE, Category.CPU),
    ({"killed": "processes"}, BY_VALUE, Category.PROCESSES),
    ({"exit": 1, "reply": error("open_files")}, BY_EXIT, Category.OPEN_FILES),
    ({"exit": 0, "reply": error("disk")}, BY_VALUE, Category.DISK),
    # What kept a call from succeeding, where it then ended by itself.
    ({"exit": 1, "refused": ("mount",)}, BY_EXIT, Category.SANDBOX_VIOLATION),
    ({"exit": -31}, BY_EXIT, Category.SANDBOX_VIOLATION),
    ({"exit": 0, "refused": ("mount",)}, BY_EXIT, None),
    (
        {"exit": 0, "refused": ("mount",), "reply": error("exception")},
        BY_VALUE,
        Category.SANDBOX_VIOLATION,
    ),
    (
        {"exit": 0, "refused": ("mount",), "reply": error("tool_error")},
        BY_VALUE,
        Category.TOOL_ERROR,
    ),
    ({"exit": 1, "at_process_limit": True, "refused": ("mount",)}, BY_EXIT, Category.PROCESSES),
    ({"exit": 0, "at_process_limit": True}, BY_EXIT, None),
    ({"exit": -9, "at_process_limit": True}, BY_EXIT, Category.PROCESSES),
    ({"exit": -11, "at_process_limit": True}, BY_EXIT, Category.SIGNAL),
    ({"exit": 1, "scratch_full": True}, BY_EXIT, Category.DISK),
    ({"exit": 0, "scratch_full": True}, BY_EXIT, None),
    ({"exit": 152, "usage": Usage(cpu_seconds=60, peak_memory=1)}, BY_EXIT, Category.CPU),
    ({"exit": 137, "usage": Usage(cpu_seconds=1, peak_memory=1)}, BY_EXIT, Category.EXIT_CODE),
    # What we did comes before what the worker says of itself.
    ({"killed": "wall", "exit": 0, "reply": VALUE}, BY_VALUE, Category.WALL),
    ({"killed": "output", "exit": -9}, BY_EXIT, Category.OUTPUT_LIMIT),
    ({"killed": "wall", "bad_reply": "cut"}, BY_VALUE, Category.WALL),
    # What the kernel says comes before it too.
    ({"exit": -6, "reply": VALUE}, BY_VALUE, Category.SIGNAL),
    ({"exit": -11, "bad_reply": "the stream ended inside a frame"}, BY_VALUE, Category.SIGNAL),
]


@pytest.mark.parametrize(("report", "definition", "category"), VERDICTS)
def test_evidence_has_one_category_and_the_category_its_status(report, definition, category):
    made = outcome(definition, **report)
    assert (made.error.category if made.error else None) is category
    assert made.status is (STATUS_OF[category] if category else Status.SUCCEEDED)
    assert made.for_llm()


def test_every_category_that_a_report_can_show_is_in_the_table():
    elsewhere = {category for category in Category if STATUS_OF[category] is Status.REJECTED}
    assert {row[2] for row in VERDICTS} == set(Category) - elsewhere | {None}


@pytest.mark.parametrize("category", [c for c in Category if STATUS_OF[c] is Status.REJECTED])
def test_a_refusal_says_that_nothing_ran(category):
    made = refused(Origin(CALL), ErrorInfo(category=category, message="m"))
    assert (made.status, made.success, made.source) == (Status.REJECTED, False, "controller")
    assert (made.enforcement.rung, made.return_code, made.metadata.attempts) == (None, None, 0)


def test_a_signal_is_named_and_leaves_no_return_code():
    made = outcome(exit=-11)
    assert (made.signal, made.return_code) == ("SIGSEGV", None)
    assert "SIGSEGV" in made.for_llm()


def test_an_exit_code_is_told_with_what_a_shell_means_by_it():
    assert outcome(BY_EXIT, exit=3).return_code == 3
    assert (
        "code 127 (a shell says so of a command that is not found)" in outcome(exit=127).for_llm()
    )
    assert "ended by SIGKILL" in outcome(BY_EXIT, exit=137).for_llm()


@pytest.mark.parametrize("number", [1, 9, 11, 35, 64, 99])
def test_signal_names_and_numbers_are_each_others_inverse(number):
    assert signal_number(signal_name(number)) == number


def test_partial_output_is_kept_and_shown():
    made = outcome(killed="wall", stdout=captured(b"so far\n"), stderr=captured(b"warning\n"))
    assert "output so far is kept" in made.error.hint
    assert "output so far" not in outcome(killed="wall").error.hint
    assert made.output == "so far\n"
    assert "so far" in made.for_llm()
    assert "time limit of 30 s" in made.for_llm()
    assert made.metadata.stderr == "warning\n"


def test_stderr_is_not_a_failure():
    made = outcome(BY_EXIT, exit=0, stderr=captured(b"Error: fatal!\n"))
    assert made.success


def test_a_returned_structure_is_kept_and_rendered_and_print_stands_beside_it():
    value = {"é": [1, None]}
    made = outcome(exit=0, reply={"type": "reply", "value": value}, stdout=captured(b"printed"))
    assert made.structured == value
    assert json.loads(made.output) == value
    assert "é" in made.output
    assert made.metadata.stdout == "printed"


def test_returned_text_is_the_output_as_it_is():
    made = outcome(exit=0, reply={"type": "reply", "value": "a\nb"})
    assert (made.output, made.structured) == ("a\nb", None)


def test_a_tool_that_prints_and_returns_nothing_has_its_print_as_output():
    made = outcome(exit=0, reply={"type": "reply", "value": None}, stdout=captured(b"hi"))
    assert (made.output, made.metadata.stdout) == ("hi", "")


def test_a_result_carries_what_was_enforced_measured_and_decided():
    origin = Origin(CALL, digest="d", rule_id="r", policy_version="v", approval_id="a")
    report = Report(exit=0, usage=Usage(cpu_seconds=0.5, peak_memory=9), mechanism="SIGKILL")
    made = from_report(origin, report, BY_EXIT, Limits(), ENFORCED, wall=1, attempts=3, budget=99)
    assert made.enforcement == ENFORCED
    facts = made.metadata
    assert (facts.cpu_seconds, facts.peak_memory, facts.attempts) == (0.5, 9, 3)
    assert (facts.digest, facts.rule_id, facts.policy_version) == ("d", "r", "v")
    assert (facts.approval_id, facts.ended_by, facts.survivors_checked) == ("a", "SIGKILL", True)
    assert (made.call_id, made.tool_name) == (CALL.call_id, CALL.name)
    assert made.latency_ms >= 0


def test_an_inline_result_says_that_there_was_no_wall():
    made = from_inline(Origin(CALL), [1], None, Enforcement(rung="inline"), 100)
    assert (made.source, made.enforcement.rung, made.structured) == ("inline", "inline", [1])


@pytest.mark.parametrize("limit", range(9))
def test_cuts_fall_between_characters(limit):
    data = "é€😀".encode()
    start, end = text.whole_start(data, limit), text.whole_end(data, 4 + limit)
    assert len(start) <= limit
    assert data.startswith(start)
    assert data.endswith(end)
    assert "\ufffd" not in start.decode() + end.decode()


@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_the_smallest_budgets_do_not_cut_a_character(budget):
    shown, _ = shorten_text("😀" * 8, budget)
    assert "\ufffd" not in shown


def test_invalid_bytes_become_replacement_characters():
    assert text.decode(b"a\xff\xc3") == "a\ufffd\ufffd"


def test_what_fits_the_budget_is_not_touched():
    assert shorten(captured(b"x" * 100), 100) == ("x" * 100, None)


def test_head_and_tail_are_kept_with_exact_counts_between_them():
    lines = "".join(f"line {number:03}\n" for number in range(100))
    shown, cut = shorten_text(lines, 90)
    assert shown.startswith("line 000\n")
    assert shown.endswith("line 099\n")
    assert cut == Truncation(total_bytes=900, total_lines=100, omitted_bytes=819, omitted_lines=91)
    assert "[... 819 bytes (91 lines) left out ...]\n" in shown


def test_a_cut_of_the_capture_itself_inside_a_character_does_not_show():
    data = "é".encode() * 1000
    cut = Captured(head=data[:31], tail=data[-31:], total_bytes=2000, total_lines=0)
    shown, truncation = shorten(cut, 200)
    assert "\ufffd" not in shown
    assert shown.count("é") == 30
    assert truncation.omitted_bytes == 2000 - 60


SECRET = "correct-horse-battery-staple"
HIDING = Redactor({"KEY": SECRET})
LINE = b"." * 30 + b"\n"


def parts_shown(shown: str) -> list[str]:
    """What of the secret can be read: parts of six characters or more."""
    return [SECRET[at : at + 6] for at in range(len(SECRET) - 5) if SECRET[at : at + 6] in shown]


def hidden(redactor=HIDING, budget=1000, **fields):
    return from_report(
        Origin(CALL, redactor=redactor),
        Report.model_validate(fields),
        BY_VALUE,
        Limits(),
        ENFORCED,
        wall=30.0,
        attempts=1,
        budget=budget,
    )


def check_counts(data: bytes, shown: str, cut: Truncation) -> None:
    """What is shown, with its secrets put back, is the stream without what is left out."""
    head, _, rest = shown.replace("[redacted: KEY]", SECRET).partition("[... ")
    tail = rest.partition(" left out ...]\n")[2]
    head = head if data.startswith(head.encode()) else head.removesuffix("\n")
    kept = head + tail
    if len(kept) + cut.omitted_bytes != len(data):  # the marker's own line end, as it seems
        kept = head.removesuffix("\n") + tail
    assert data.startswith(head.encode())
    assert data.endswith(tail.encode())
    assert len(kept) + cut.omitted_bytes == cut.total_bytes == len(data)
    assert kept.count("\n") + cut.omitted_lines == cut.total_lines == data.count(b"\n")


@pytest.mark.parametrize("budget", [300, 310])
def test_no_cut_of_what_is_shown_goes_through_a_secret(budget):
    bare = 0
    for place in range(1000):
        data = b"x" * place + SECRET.encode() + b"x" * (1000 - place)
        shown, cut = shorten(captured(data), budget, HIDING)
        assert parts_shown(shown) == []
        check_counts(data, shown, cut)
        bare += bool(parts_shown(shorten(captured(data), budget)[0]))
    assert bare > 200, "without a redactor, it shows"


@pytest.mark.parametrize("budget", [300, 50_000, 90_000])
@pytest.mark.parametrize("chunk", [7, 4096, 100_000])
def test_no_cut_of_the_capture_goes_through_a_secret(budget, chunk):
    bare = 0
    for place in [*range(29_960, 30_010), *range(69_960, 70_010), 0, 50_000, 99_900]:
        data = (LINE * 4000)[:100_000]
        data = data[:place] + SECRET.encode() + data[place + len(SECRET) :]
        capture = StreamCapture(30_000, 30_000)
        for start in range(0, len(data), chunk):
            capture.feed(data[start : start + chunk])
        shown, cut = shorten(capture.result(), budget, HIDING)
        assert parts_shown(shown) == []
        check_counts(data, shown, cut)
        bare += bool(parts_shown(shorten(capture.result(), budget)[0]))
    assert bare, "without a redactor, it shows"


def test_both_streams_and_the_returned_value_are_redacted():
    value = {"key": SECRET, SECRET: [f"is {SECRET}"]}
    fields = {
        "exit": 0,
        "reply": {"type": "reply", "value": value},
        "stdout": captured(f"printed {SECRET}".encode()),
        "stderr": captured(f"warned {SECRET}".encode()),
    }
    made = hidden(**fields)
    assert made.structured == {"key": "[redacted: KEY]", "[redacted: KEY]": ["is [redacted: KEY]"]}
    assert json.loads(made.output) == made.structured
    assert made.metadata.stdout == "printed [redacted: KEY]"
    assert made.metadata.stderr == "warned [redacted: KEY]"
    assert SECRET not in made.model_dump_json() + made.for_llm()
    assert hidden(no_redaction, **fields).model_dump_json().count(SECRET) > 4


@pytest.mark.parametrize("kind", ["exception", "tool_error", "disk"])
def test_an_errors_message_and_hint_are_redacted(kind):
    reply = error(kind, f"no {SECRET}", f"E{SECRET}", f"use {SECRET}")
    made = hidden(exit=0, reply=reply)
    assert "no [redacted: KEY]" in made.error.message
    assert made.error.hint == "use [redacted: KEY]"
    assert SECRET not in made.model_dump_json()
    assert SECRET in hidden(no_redaction, exit=0, reply=reply).model_dump_json()


def test_a_message_is_spelled_for_the_model_and_hides_a_secret_with_a_sequence_in_it():
    made = hidden(exit=0, reply=error("tool_error", "no a\x1b[31mb\x9b"))
    assert "no a\\x1b[31mb\\x9b" in made.for_llm()
    assert made.error.message == "no a\x1b[31mb\x9b", "kept as it was"
    split = f"no {SECRET[:9]}\x1b[0m{SECRET[9:]}"
    assert hidden(exit=0, reply=error("tool_error", split)).error.message == "no [redacted: KEY]"


def test_a_message_that_was_cut_shows_no_part_of_a_secret():
    message = ("x" * (4000 - 10) + SECRET)[:4000]
    made = hidden(exit=0, reply=error("tool_error", message))
    assert made.error.message == "x" * (4000 - 10) + "[redacted: cut off]"
    shorter = hidden(exit=0, reply=error("tool_error", message[1:]))
    assert shorter.error.message == message[1:], "which was not cut"


@pytest.mark.parametrize(
    ("how", "whole"),
    [
        ({"exit": 0}, True),
        ({"exit": 1}, True),
        ({"exit": -9}, False),
        ({"exit": 137}, False),
        ({"killed": "wall"}, False),
    ],
)
def test_the_last_words_of_a_process_that_was_ended_show_no_part_of_a_secret(how, whole):
    made = hidden(stdout=captured(b"key correct-hors"), stderr=captured(b"e\n"), **how)
    assert made.output == ("key correct-hors" if whole else "key [redacted: cut off]")
    assert made.metadata.stderr == "e\n"


def test_inline_values_and_refusals_are_redacted():
    origin = Origin(CALL, redactor=HIDING)
    wrong = ErrorInfo(category=Category.EXCEPTION, message=f"no {SECRET}")
    made = from_inline(origin, [SECRET], None, Enforcement(rung="inline"), 100)
    assert (made.output, made.structured) == ('["[redacted: KEY]"]', ["[redacted: KEY]"])
    failed = from_inline(origin, None, wrong, Enforcement(), 100)
    assert failed.error.message == "no [redacted: KEY]"
    denied = ErrorInfo(category=Category.POLICY_DENIED, message=f"not with {SECRET}")
    assert refused(origin, denied).error.message == "not with [redacted: KEY]"


@pytest.mark.parametrize("tail", [18_000, 40_000])
@pytest.mark.parametrize("place", range(0, 40_000, 1000))
def test_a_private_key_is_never_shown_from_its_middle(place, tail):
    body = f"{'Ab1/' * 16}\n" * 100
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n"
    data = (LINE * 2000)[: place - place % len(LINE)] + key.encode() + LINE * 500
    capture = StreamCapture(20_000, tail)
    capture.feed(data)
    assert "Ab1/" not in shorten(capture.result(), 30_000, Redactor())[0]
    assert "Ab1/" in shorten(capture.result(), 30_000)[0]


@pytest.mark.parametrize("killed", ["cancel", "wall"])
def test_a_patch_that_was_ended_says_that_it_may_be_applied_in_part(killed):
    patching = ToolRegistry.builtin().resolve("apply_patch")
    assert "in part" in judge(Report(killed=killed), patching, Limits(), 1).error.hint
    reading = ToolRegistry.builtin().resolve("read_file")
    assert "in part" not in judge(Report(killed=killed), reading, Limits(), 1).error.hint
