"""Claims of `toolcell.shell` on what the shell itself makes of a line, each with its control."""

import pytest

from toolcell.shell.lines import read_line


def doubted(text: str) -> bool:
    line = read_line(text)
    return bool(line.unreadable) or any(
        command.doubt or command.words[0] is None for command in line.commands
    )


def paths(text: str) -> list[str | None]:
    return [write.path for write in read_line(text).writes]


@pytest.mark.parametrize(
    "text",
    [
        "echo evil 3<a.txt >/dev/fd/3",
        "echo evil <a.txt >/dev/stdin",
        "sort -o /dev/stdin a.txt <b.bin",
        "echo x > /dev/fd/$x",
        "exec 3<.git; cd /dev/fd/3; echo x > pwned",
        "cd /dev; echo x > fd/3",
        "cd /proc/self; echo x > cwd/x",
        "cd /proc/self/cwd/../x; echo > y",
        "echo x > /proc/self/cwd/.git/pwned",
        "echo x > /proc/self/../self/cwd/f",
        "echo x > /proc/self/task/1/fd/3",
        "ln -s /proc/self/cwd/.git/hooks g; echo x > g/y",
        "ln -s /proc/self g; echo x > g/cwd/y",
        "echo evil 1<a.txt >/dev/stdout",
        "exec 2<a.txt; echo x >/dev/stderr",
        "echo evil 3<a.txt >&3 >/dev/stdout",
        "echo evil <a.txt >&0 >/dev/stdout",
    ],
)
def test_a_file_that_is_opened_again_by_its_descriptor_is_an_unknown_write(text):
    assert None in paths(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ls >/dev/stdout 2>/dev/stderr", []),
        ("ls >/dev/fd/1 2>/proc/self/fd/2", []),
        ("echo a <b >/dev/stdout 2>&1", []),
        ("echo a 3>&1 1>&2 2>&3 >/dev/stderr", []),
        ("while read -u 3 x; do echo $x; done 3<f", []),
        ("echo x > dev/fd/3", ["dev/fd/3"]),
        ("cat </dev/stdin > f", ["f"]),
    ],
)
def test_a_stream_that_the_line_was_given_is_no_write(text, found):
    assert paths(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "f() { echo x > config; }; cd .git; f",
        "f() { tee config; }; cd .git; f",
        "f() { cp a config; }; cd .git; f",
        "for i in 1 2; do echo x > config; cd .git; done",
        "trap 'echo x > config' EXIT; cd .git",
        "cd .git; echo x > config",
    ],
)
def test_what_runs_later_may_write_in_a_directory_that_is_entered_later(text):
    assert ".git/config" in paths(text)


def test_what_runs_once_writes_in_the_directories_that_were_entered():
    assert paths("echo x > config; cd .git") == ["config"]
    assert paths("f() { echo x > config; }; f") == ["config"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cd a && echo > f", ["a/f"]),
        ("cd a && cd b && echo > f", ["a/b/f"]),
        ("x && cd a 2>/dev/null && { echo > f; }", ["a/f"]),
        ("cd a && echo > f; echo > g", ["a/f", "a/g", "g"]),
        ("cd a && cd b; echo > g", ["a/b/g", "a/g", "g"]),
        ("cd a && echo > f || echo > g", ["a/f", "a/g", "g"]),
        ("x || cd a && echo > f", ["a/f", "f"]),
        ("! cd a && echo > f", ["a/f", "f"]),
        ("cd a | x && echo > f", ["a/f", "f"]),
        ("cd a; echo > f", ["a/f", "f"]),
    ],
)
def test_behind_cd_and_two_ampersands_the_directory_is_known(text, found):
    assert sorted(map(str, paths(text))) == found


@pytest.mark.parametrize(
    "text",
    [
        "echo hi > /dev/tcp/$h/80",
        'x=/dev/tcp/h/80; cat < "$x"',
        'x=/de"v"/tcp/h/80; cat < "$x"',
        'for i in 1 2; do cat < "$x"; x=/dev/udp/h/80; done',
    ],
)
def test_a_path_that_may_be_a_connection_is_a_doubt(text):
    assert doubted(text)
    if ">" in text:
        assert paths(text) == [None]


def test_an_unknown_path_is_no_connection_where_the_line_names_none():
    assert not doubted('x=a; cat < "$x" 2>/dev/null')
    assert not doubted("cat < src/$h")


@pytest.mark.parametrize(
    "text",
    [
        "bash <<< ls <>build/x",
        "bash <<< ls 0>&3",
        "{ evil() { ls; }; } < /nonexistent; evil x",
        "ls | evil() { ls; }; evil x",
        "eval 'evil() { ls; }'; evil x",
        "trap 'evil() { ls; }' EXIT; evil x",
        "echo $((1/0)); evil() { ls; }\nevil x",
    ],
)
def test_what_may_not_be_what_it_seems_is_in_doubt(text):
    assert doubted(text)


def test_a_function_is_looked_through_where_it_surely_is_one():
    for text in ("f() { ls; }; f x", "echo\nf() { ls; }\nf x", "echo; f() { ls; }; f x"):
        assert not doubted(text)
        assert [c.wraps for c in read_line(text).commands if c.words[0] == "f"] == [True]


def test_command_starts_the_program_and_not_the_function():
    found = read_line("evil() { ls; }; command evil x").commands
    assert found[-1].words == ("evil", "x")
    assert not found[-1].wraps


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("read x; echo $((x))", True),
        ("echo $((REPLY))", True),
        ("x=${PWD##*/}; echo $((x))", True),
        ("RANDOM=$1; echo $((RANDOM))", True),
        ("echo $((RANDOM % 5)) $((SECONDS - 1))", False),
        ("declare -A m; while read -r w; do m[$w]=1; done < f", False),
        ("declare -A m; while read -r w; do (( m[$w]++ )); done < f", False),
        ("while read -r w; do m[$w]=1; done < f", True),
        ("if a; then declare -A m; fi; m[$1]=1", True),
    ],
)
def test_arithmetic_on_what_bash_fills_in_asks_and_on_counters_not(text, asks):
    assert doubted(text) is asks


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("declare -n r; r=GIT_EXTERNAL_DIFF; r=evil; git diff", True),
        ("declare -n r=a; for r in PATH; do r=evil; done; git diff", True),
        ("declare -n r=a; r=b; git diff", False),
        ("x=GIT_EXTERNAL_DIFF; : ${!x:=evil}; git diff", True),
        ("x=GIT_EXTERNAL_DIFF; : ${x:=evil}; git diff", False),
        ("export GIT_EXTERNAL_DIFF; git diff", True),
        ("export FOO; git diff", False),
        ("PAGER=cat; export PAGER; git diff", False),
        ("nPM_cONFIG_script_shell=evil npm test", True),
        ("GOCACHEPROG=evil go test", True),
        ("GOCACHE=x go test", False),
    ],
)
def test_a_variable_set_by_another_name_is_a_doubt(text, asks):
    assert doubted(text) is asks


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ('make test SHELL="$x"', True),
        ('env make "SHELL=$x"', True),
        ('git -c core.pager="$x" log', True),
        ('make test ARGS="$x"', False),
        ('find "$PWD" -name x', False),
        ('x="${f%.*}"; sort "$x.txt"', False),
        ('x="${f#*.}"; sort "$x.txt"', True),
        ('git diff --stat "$(git merge-base main HEAD)"', False),
        ('for i in {1..5}; do sort "$i"; done', False),
        ('for f in *.py; do sort "$f"; done', False),
        ('git log --since="$d"', False),
        ('d=src; find "$d/a" -name "*.py"', False),
        ('find . -name "$x" -exec grep -l "$y" {} \\;', False),
        ('n=${N:-5}; git log -n "$n"', False),
        ('f="$HOME/x"; tar xf "$f"', False),
        ('tar czf "$(date +%F).tgz" src', False),
        ('tar czf "$(cat name)" src', True),
        ("find . -type f | xargs -I{} grep -H foo {}", False),
    ],
)
def test_a_word_asks_only_where_it_may_be_an_option_that_runs_something(text, asks):
    assert doubted(text) is asks


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        ("ls &>build/x evil", True),
        ("ls &>>build/x evil", True),
        ("cat <<< a", True),
        ("ls |& cat", True),
        ("echo $'a'", True),
        ("ls {x}>y", True),
        ("ls 2>/dev/null | wc -l", False),
    ],
)
def test_what_only_bash_reads_so_is_in_doubt_for_another_shell(code, asks):
    assert doubted(f'sh -c "{code}"'.replace("$", "\\$")) is asks
    assert not doubted(f'bash -c "{code}"'.replace("$", "\\$"))
    assert doubted(f'flock f -c "{code}"'.replace("$", "\\$")) is asks


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("script -qc 'cat a.txt' pwn", "pwn"),
        ("flock pwn ls", "pwn"),
        ("\\time -o pwn ls", "pwn"),
        ("parallel --joblog pwn ls ::: a", "pwn"),
    ],
)
def test_what_a_wrapper_writes_is_not_implied_by_a_command(text, file):
    assert [(w.path, w.implied) for w in read_line(text).writes] == [(file, False)]
    assert read_line("tee pwn").writes[0].implied  # the control


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("parallel ls {= '$_=qx{evil}' =} ::: a", True),
        ("parallel 'ls \"{}\"' ::: '$(evil)'", True),
        ("parallel -S host ls ::: a", True),
        ("parallel ls {} ::: a b", False),
        ("parallel gzip ::: a b", False),
    ],
)
def test_parallel_is_in_doubt_where_an_input_may_be_code(text, asks):
    assert doubted(text) is asks


@pytest.mark.parametrize(
    "prefix",
    [
        "ssh-agent",
        "choom -n 0 --",
        "x86_64",
        "i386 -R",
        "gpg-agent --daemon",
        "strace -p 1",
        "sudo -k",
        "perf stat -p 1",
    ],
)
def test_more_launchers_start_what_follows(prefix):
    assert read_line(f"{prefix} git push").commands[-1].words == ("git", "push")


def test_launchers_that_are_not_understood_are_in_doubt():
    assert doubted("sg root -c 'git push'")
    assert doubted("ld-linux-x86-64.so.2 git push")
    assert not doubted("sudo -k")
    assert len(read_line("choom -p 1").commands) == 1
