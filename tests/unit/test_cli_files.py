"""Claims of `toolcell.cli.files`: what came of a call is told beside its output."""

from toolcell.cli.files import in_a_cell, print_files
from toolcell.model import Artifact, FileChange, RefusedArtifact

from .samples import result

PLOT = Artifact(handle="art-x", name="plot.png", media_type="image/png", size=12345, sha256="0")


def test_artifacts_and_changes_go_to_standard_error(capsys):
    print_files(
        result(
            output="data",
            artifacts=(PLOT,),
            refused_artifacts=(RefusedArtifact(name="pipe", reason="it is a pipe"),),
            changes=(FileChange(path="a", kind="changed", size_before=1, size=2000),),
            changes_note="305 files changed in all",
        )
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "[artifacts]",
        "art-x  plot.png (image/png, 12,345 bytes)",
        "pipe did not come back: it is a pipe",
        "[changed files]",
        "changed a (1 -> 2,000 bytes)",
        "305 files changed in all",
        "toolcell: to see it: toolcell output show art-x",
    ]
    print_files(result())
    assert capsys.readouterr() == ("", "")


def test_a_table_names_the_first_artifact_and_counts_the_others():
    assert in_a_cell(result()) == ""
    assert in_a_cell(result(artifacts=(PLOT,))) == " [art-x plot.png, 12,345 bytes]"
    assert in_a_cell(result(artifacts=(PLOT, PLOT))).endswith("bytes and 1 more]")
    one = PLOT.model_copy(update={"size": 1})
    assert in_a_cell(result(artifacts=(one,))).endswith("plot.png, 1 byte]")


def test_the_model_reads_a_bounded_list_of_each():
    many = [FileChange(path=str(n), kind="added", size=n) for n in range(100)]
    text = result(changes=tuple(many), changes_note="107 files changed in all").for_llm()
    assert text.count("added") == 30
    assert text.endswith("bytes)\n107 files changed in all")
    assert result(changes=tuple(many)).for_llm().endswith("bytes)\n... and 70 more")
