"""Claims of `toolcell.policy`: deny by default, the strictest wins, errors with file and line."""

import pytest

from toolcell.errors import PolicyError
from toolcell.model import Action
from toolcell.policy import ToolPolicy, check_policy, load_policy, shipped_policies
from toolcell.policy.file import parse_policy
from toolcell.registry import ToolRegistry


def test_what_no_rule_names_is_denied():
    decision = ToolPolicy(allow=["read_file"]).by_name("shell")
    assert (decision.action, decision.rule_id) == (Action.DENY, "default")


def test_the_default_can_be_ask_and_never_allow():
    assert ToolPolicy(default="ask").by_name("shell").action is Action.ASK
    with pytest.raises(PolicyError, match="`default`: expected 'deny' or 'ask'"):
        ToolPolicy(default="allow")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"alow": ["echo"]}, "unknown key `alow`; did you mean `allow`?"),
        ({"network": "none"}, "unknown key `network`; it belongs under [cell]"),
        ({"cell": {"netwrk": "none"}}, "unknown key `cell.netwrk`; did you mean `network`?"),
        (
            {"rules": [{"id": "a", "tool": "b", "args": {"c": {"eqals": 1}}}]},
            "unknown key `rules[1].args.c.eqals`; did you mean `equals`?",
        ),
        ({"allow": ["a"], "deny": ["a"]}, "'a' stands in both `allow` and `deny`; keep one"),
    ],
)
def test_what_is_wrong_with_a_policy_in_python_is_told_in_the_words_for_files(keys, problem):
    with pytest.raises(PolicyError) as caught:
        ToolPolicy(**keys)
    assert str(caught.value) == f"ToolPolicy: {problem}"


@pytest.mark.parametrize(
    ("sets", "action", "rule"),
    [
        ({"allow": ["*"]}, "allow", "allow:*"),
        ({"allow": ["*"], "ask": ["write_*"]}, "ask", "ask:write_*"),
        ({"allow": ["write_file"], "ask": ["write_*"]}, "ask", "ask:write_*"),
        ({"allow": ["write_file"], "deny": ["*"]}, "deny", "deny:*"),
        ({"ask": ["write_file"], "deny": ["w*"]}, "deny", "deny:w*"),
        ({"allow": ["w*"], "ask": ["write_*"], "deny": ["write_file"]}, "deny", "deny:write_file"),
        ({"allow": ["WRITE_FILE", "write"], "ask": ["write_file_"]}, "deny", "default"),
    ],
)
def test_the_strictest_rule_that_matches_wins(sets, action, rule):
    decision = ToolPolicy(**sets).by_name("write_file")
    assert (decision.action, decision.rule_id) == (action, rule)


@pytest.mark.parametrize("pair", [("allow", "ask"), ("allow", "deny"), ("ask", "deny")])
def test_an_entry_in_two_sets_raises_value_error(pair):
    with pytest.raises(ValueError, match="'shell' stands in both"):
        ToolPolicy(**{name: ["shell", name] for name in pair})


@pytest.mark.parametrize("sets", [{"allow": ["x"]}, {"ask": {"x": ""}}, {"deny": ["x"]}, {}])
def test_a_reason_is_never_empty(sets):
    assert ToolPolicy(**sets).by_name("x").reason


def test_a_reason_that_is_given_is_the_one_told():
    assert ToolPolicy(ask={"x": "it sends mail"}).by_name("x").reason == "it sends mail"


def test_network_host_contradicts_requiring_the_network_wall():
    with pytest.raises(ValueError, match='network = "host" gives up what `require` holds'):
        ToolPolicy(cell={"network": "host"})
    ToolPolicy(cell={"network": "host", "require": ["filesystem"]})


def test_the_version_changes_with_what_the_policy_says_and_not_with_its_file():
    text = 'version = 1\n[tools]\nallow = ["echo"]\n'
    version = parse_policy(text, "a/p.toml").version
    assert parse_policy(f"# other words\n{text}", "b/p.toml").version == version
    assert parse_policy(text.replace("echo", "shell"), "p.toml").version != version
    assert parse_policy(text + '[limits]\nwall = "9s"\n', "p.toml").version != version


def test_a_file_is_read_with_its_reasons_and_units():
    policy = parse_policy(
        """
        version = 1
        default = "ask"
        [tools]
        allow = ["read_*"]
        [tools.deny]
        shell = "no shell here"
        [cell]
        workspace = "ro"
        env = {LANG = "C"}
        [limits]
        wall = "2m"
        cpu = "1500ms"
        memory = "64MiB"
        """,
        "dir/mine.toml",
    )
    assert (policy.name, policy.source, policy.default) == ("mine", "dir/mine.toml", "ask")
    assert policy.deny == {"shell": "no shell here"}
    assert policy.cell.workspace == "ro"
    assert (policy.limits.wall, policy.limits.cpu) == (120, 1.5)
    assert policy.limits.memory == 64 * 1024**2


@pytest.mark.parametrize(
    "line",
    [
        *["wall = inf", "cpu = inf", "grace = nan"],
        *[f'wall = "{"9" * 400}s"', f'memory = "{"9" * 400}B"'],
    ],
    ids=lambda line: line[:20],
)
def test_a_limit_that_is_not_finite_is_refused(line):
    with pytest.raises(PolicyError, match=r"p\.toml:3: `limits\."):
        parse_policy(f"version = 1\n[limits]\n{line}", "p.toml")


@pytest.mark.parametrize("line", ["processes = true", 'processes = "64"', "wall = true"])
def test_a_limit_is_not_coerced(line):
    with pytest.raises(
        PolicyError, match=r"p\.toml:3: `limits\..*expected a (whole number|number|duration)"
    ):
        parse_policy(f"version = 1\n[limits]\n{line}", "p.toml")


def test_version_true_is_not_version_1():
    with pytest.raises(PolicyError, match="reads version 1, got True"):
        parse_policy("version = true", "p.toml")


@pytest.mark.parametrize(
    "line",
    ['env = {"A=B" = "x"}', 'env = {"" = "x"}', r'env = {A = "\u0000"}', r'read = ["/\u0000"]'],
)
def test_what_no_process_can_be_given_is_refused_when_the_policy_loads(line):
    with pytest.raises(PolicyError, match=r"p\.toml:3: `cell\."):
        parse_policy(f"version = 1\n[cell]\n{line}", "p.toml")


@pytest.mark.parametrize(
    "text",
    ["version = 1\n[tools]\nallow = [[1]]", "a = " + "[" * 3000, "version = " + "1" * 5000],
    ids=["an entry that is no text", "too deep", "too many digits"],
)
def test_text_that_no_parser_takes_is_a_policy_error(text):
    with pytest.raises(PolicyError, match=r"p\.toml"):
        parse_policy(text, "p.toml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('version = 1\n[tools]\nallow = ["a"]\ndeny = ["a"]', 4),
        ('version = 1\n[cell]\nnetwork = "host"', 3),
    ],
)
def test_a_contradiction_names_its_line(text, line):
    with pytest.raises(PolicyError, match=rf"p\.toml:{line}: "):
        parse_policy(text, "p.toml")


@pytest.mark.parametrize("action", ["deny", "ask", "allow"])
def test_a_misspelt_tool_is_found(action):
    policy = parse_policy(f'version = 1\n[tools]\n{action} = ["shel"]', "p.toml")
    with pytest.raises(PolicyError, match=rf"p\.toml:3: `{action}` names 'shel'.*did you mean"):
        check_policy(policy, ToolRegistry.builtin())


def test_a_glob_may_match_nothing_yet():
    policy = ToolPolicy(allow=["later_*"], ask=["mail_*"], deny=["[x]?"])
    check_policy(policy, ToolRegistry.builtin())


@pytest.mark.parametrize("name", ["default", "strict", "ci", "open"])
def test_a_shipped_policy_loads_by_name_and_fits_the_built_in_tools(name):
    policy = load_policy(name)
    assert policy.name == name
    check_policy(policy, ToolRegistry.builtin())
    assert policy.by_name("a_tool_of_mine").action is not Action.ALLOW


def test_every_shipped_policy_opens_with_what_it_is_for():
    shipped = shipped_policies()
    assert {"default", "strict", "ci", "open"} == set(shipped)
    for name, path in shipped.items():
        assert path.read_text().startswith(f"# {name}: ")


def test_a_policy_that_is_not_there_is_told_with_those_that_are(tmp_path):
    with pytest.raises(PolicyError, match=r"neither a file nor one of the shipped.*default"):
        load_policy(tmp_path / "none.toml")


@pytest.mark.parametrize("content", [b"version = 1\n# \xff", None], ids=["not UTF-8", "directory"])
def test_a_policy_that_cannot_be_read_is_a_policy_error(tmp_path, content):
    path = tmp_path / "p.toml"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('defualt = "deny"', "did you mean `default`?"),
        ('allow = ["echo"]', "it belongs under [tools]"),
        ('wall = "30s"', "it belongs under [limits]"),
        ('[cell]\nnetwrk = "none"', "did you mean `network`?"),
        ("[cell]\nread = 3", "expected a list"),
        ("[tools]\nfrobnicate = 1", "unknown key `tools.frobnicate`"),
    ],
)
def test_a_mistake_is_answered_with_what_was_likely_meant(text, words):
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"version = 1\n{text}\n", "p.toml")
    assert words in str(caught.value)
