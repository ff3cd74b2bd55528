"""Claims of policy files: what they extend, their examples, tests and errors; and of layers."""

import pytest

from toolcell.errors import PolicyError
from toolcell.model import Action
from toolcell.policy import ToolPolicy, check_policy, load_policy
from toolcell.policy.file import load_layer, load_tests, parse_policy, shipped_policies
from toolcell.policy.layers import layer_files, tighten, tightened_here
from toolcell.policy.locate import Lines
from toolcell.registry import ToolRegistry

from .deciding import decide, line

RULE = """
[[rule]]
id = "push"
tool = "shell"
command = ["git", "push"]
decision = "ask"
reason = "it publishes"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="p.toml"):
        path = tmp_path / name
        path.write_text("version = 1\n" + text)
        return path

    return write


def test_a_policy_extends_a_shipped_one_by_name(write):
    policy = load_policy(write('extends = "default"\n[tools]\nallow = ["mine"]\n'))
    base = load_policy("default")
    assert set(policy.allow) == {*base.allow, "mine"}
    assert [rule.id for rule in policy.rules] == [rule.id for rule in base.rules]
    assert policy.limits == base.limits
    assert policy.name == "p"


def test_what_is_written_again_replaces_what_it_extends_and_the_rest_stays(write):
    write('default = "ask"\n[tools]\nask = ["echo"]\n[limits]\nwall = "9s"\ncpu = "9s"\n' + RULE)
    own = 'extends = "p.toml"\n[tools]\nallow = ["echo"]\n[limits]\nwall = "3s"\n'
    policy = load_policy(write(own, "own.toml"))
    assert (policy.default, policy.ask, list(policy.allow)) == ("ask", {}, ["echo"])
    assert (policy.limits.wall, policy.limits.cpu) == (3, 9)
    assert line(policy, "git push").rule_id == "push"
    replaced = own + RULE.replace('"ask"', '"deny"')
    assert line(load_policy(write(replaced, "own.toml")), "git push").action == "deny"


def test_a_policy_that_extends_itself_or_nothing_is_refused_with_the_line(write):
    write('extends = "b.toml"', "a.toml")
    path = write('extends = "a.toml"', "b.toml")
    with pytest.raises(PolicyError, match=r"a\.toml:2: the policy extends itself"):
        load_policy(path)
    with pytest.raises(PolicyError, match=r"c\.toml:2: there is no policy 'defualt'"):
        load_policy(write('extends = "defualt"', "c.toml"))


@pytest.mark.parametrize(
    ("examples", "key", "words"),
    [
        ('match = ["git status"]', "match", "does not match this example: 'git status'"),
        ('match = ["git push", "ls"]', "match", "does not match this example: 'ls'"),
        ('not_match = ["git -C x push"]', "not_match", "does match this example"),
        ('not_match = ["git $X"]', "not_match", "does match this example"),
    ],
)
def test_an_example_that_does_not_come_true_is_an_error_with_its_line(examples, key, words):
    with pytest.raises(PolicyError, match=rf"p\.toml:9: rule 'push': the rule {words}"):
        parse_policy("version = 1\n" + RULE + examples, "p.toml")
    assert key in examples


def test_examples_of_arguments_are_tables():
    text = """version = 1
[[rule]]
id = "small"
tool = "write_file"
decision = "allow"
args = { path = { under = "docs" } }
match = [{ path = "docs/a" }]
not_match = [{ path = "docs/../a" }, { path = "/docs/a" }]
"""
    assert parse_policy(text, "p.toml").rules[0].id == "small"
    with pytest.raises(PolicyError, match=r"p\.toml:7: "):
        parse_policy(text.replace("docs/a", "doc/a"), "p.toml")


@pytest.mark.parametrize(
    ("text", "line_number", "words"),
    [
        (
            RULE.replace("reason", "raeson"),
            8,
            "unknown key `rule[1].raeson`; did you mean `reason`",
        ),
        (RULE.replace('reason = "it publishes"\n', ""), 3, "says why"),
        (RULE.replace('"ask"', '"maybe"'), 7, "`rule[1].decision`"),
        (RULE + RULE, 11, "two rules have the id 'push'"),
        (RULE + "[rule.args]\ntext = { regx = 'a' }", 10, "did you mean `regex`"),
        (RULE + "[rule.args]\ntext = { regex = '(' }", 9, "not a regular expression"),
        (RULE + 'writes = ["x"]', 9, "looks at commands"),
        ('[[rule]]\nid = "x"\ntool = "echo"', 2, "write allow, ask or deny"),
        ('[[rule]]\ntool = "echo"', 2, "`rule[1].id` is missing"),
        ('[breaker]\nwarn = "3"', 3, "`breaker.warn`"),
        ('[redact]\nenv = ["A B"]', 3, "`redact.env[1]`"),
        ('on_ask = "allow"', 2, "`on_ask`"),
        ('[cell]\nwritable = "x"', 3, "expected a list"),
    ],
)
def test_every_mistake_in_a_file_is_told_with_its_line(text, line_number, words):
    with pytest.raises(PolicyError) as caught:
        parse_policy("version = 1\n" + text, "p.toml")
    assert f"p.toml:{line_number}: " in str(caught.value)
    assert words in str(caught.value)


def test_lines_are_found_in_any_toml():
    found = Lines(
        """a = 1
[t]
"b c" = '''
x = 1
[no]
'''
list = [
  1, # x = 2
  "]",
]
after = { x = 1,
  y = 2 }
[[r]]
id = 1
[r.args]
k = 1
[[r]]
id.deep = 2
"""
    )
    assert found.of(("a",)) == 1
    assert found.of(("t", "b c")) == 3
    assert found.of(("t", "list", 1)) == 7
    assert found.of(("t", "after", "y")) == 11
    assert found.of(("r", 0, "args", "k")) == 16
    assert found.of(("r", 1, "id", "deep")) == 18
    assert found.of(("r", 1, "missing")) == 17
    assert found.of(("no",)) == 1


def test_tests_of_a_policy_are_read_with_it(write):
    path = write('[[test]]\ntool = "shell"\ncommand = "ls"\ndecision = "deny"\n')
    _, tests = load_tests(path)
    assert [(each.tool, each.command, each.decision) for each in tests] == [("shell", "ls", "deny")]


def test_a_layer_only_tightens(write):
    base = load_policy("default")
    layer = load_layer(
        write(
            "[tools]\nallow = ['other']\ndeny = { echo = 'no echo' }\n"
            '[cell]\nworkspace = "ro"\nnetwork = "host"\nrequire = []\nisolation = "auto"\n'
            '[limits]\nwall = "5s"\nmemory = "64GiB"\n' + RULE
        )
    )
    policy = tighten(base, layer)
    assert decide(policy, "echo", text="x").reason == "no echo"
    assert line(policy, "git push").rule_id == "push"
    assert line(policy, "ls").action == "allow", "it says nothing of what it does not match"
    assert (policy.cell.workspace, policy.cell.network) == ("ro", "none")
    assert policy.cell.require == base.cell.require
    assert (policy.limits.wall, policy.limits.memory) == (5, base.limits.memory)
    assert policy.by_name("other").action == "deny"
    assert policy.version != base.version


def test_a_layer_with_a_default_decides_what_it_does_not_match(write):
    layer = load_layer(write('default = "deny"\n[tools]\nallow = ["echo"]\n'))
    policy = tighten(load_policy("default"), layer)
    assert decide(policy, "echo", text="x").action == "allow"
    assert line(policy, "ls").action == "deny"


def test_a_layer_can_require_the_network_wall(write):
    layer = load_layer(write('[cell]\nrequire = ["network"]\n'))
    policy = tighten(load_policy("open"), layer)
    assert policy.cell.network == "none"
    assert "network" in policy.cell.require


@pytest.mark.parametrize("key", ['read = ["/x"]', 'env = { A = "b" }', 'preload = ["numpy"]'])
def test_a_layer_that_adds_to_the_cell_is_refused(write, key):
    with pytest.raises(PolicyError, match=r"p\.toml:3: .*only tightens"):
        load_layer(write(f"[cell]\n{key}\n"))


def test_the_layers_of_a_place_are_the_project_s_and_the_user_s(tmp_path, monkeypatch, write):
    config, project = tmp_path / "config", tmp_path / "project"
    (config / "toolcell").mkdir(parents=True)
    project.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    base = load_policy("default")
    assert tightened_here(base, project) == base
    (project / "toolcell.toml").write_text("version = 1\n" + RULE)
    (config / "toolcell/policy.toml").write_text("version = 1\n[limits]\nwall = '1s'\n")
    assert [path.name for path in layer_files(project)] == ["toolcell.toml", "policy.toml"]
    policy = tightened_here(base, project)
    assert line(policy, "git push").action == "ask"
    assert policy.limits.wall == 1
    assert len(policy.layers) == 2
    (project / "toolcell.toml").write_text("version = 2\n")
    with pytest.raises(PolicyError, match=r"toolcell\.toml:1: "):
        tightened_here(base, project)


def test_the_policy_that_was_named_is_not_applied_to_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    path = tmp_path / "toolcell.toml"
    path.write_text("version = 1\n[tools]\nallow = ['echo']\n")
    assert tightened_here(load_policy(path), tmp_path).layers == ()


@pytest.mark.parametrize("name", sorted(shipped_policies()))
def test_a_shipped_policy_s_examples_hold(name):
    assert isinstance(load_policy(name), ToolPolicy)


def test_the_open_policy_gives_the_network_by_name():
    policy = load_policy("open")
    assert line(policy, "curl https://example.org").cell.network == "host"
    assert line(policy, "python3 x.py").cell.network == "none"
    assert decide(policy, "python", code="").cell.network == "none"


def test_the_ci_policy_never_asks(write):
    own = load_policy(write('extends = "ci"\n' + RULE))
    assert line(own, "git push").action == "deny"


@pytest.fixture
def layer(write):
    """A layer, from its text."""
    return lambda text: load_layer(write(text, "layer.toml"))


def test_a_layer_where_nobody_can_be_asked_makes_a_question_a_denial(layer):
    policy = tighten(ToolPolicy(ask={"shell": "why"}), layer('on_ask = "deny"\n'))
    assert line(policy, "ls").action is Action.DENY


def test_no_table_of_a_layer_loosens(layer):
    policy = ToolPolicy(
        redact={"shapes": True},
        breaker={"warn": 2, "end": 5},
        approvals={"lifetime": 60, "grants": 60},
        cell={"isolation": "full"},
    )
    text = (
        "[redact]\nshapes = false\n[breaker]\nwarn = 9\nend = 9\n"
        '[approvals]\nlifetime = "9h"\ngrants = "9h"\n[cell]\nisolation = "landlock"\n'
    )
    tight = tighten(policy, layer(text))
    assert tight.redact.shapes
    assert (tight.breaker.warn, tight.breaker.end) == (2, 5)
    assert (tight.approvals.lifetime, tight.approvals.grants) == (60, 60)
    assert tight.cell.isolation == "full"


def test_a_layer_that_extends_a_policy_decides_as_it_does(layer):
    policy = tighten(ToolPolicy(allow=["mine"], ask={"shell": "x"}), layer('extends = "strict"\n'))
    assert [each.decides for each in policy.layers] == [True]


def test_a_mistake_in_a_layer_is_found(layer):
    policy = tighten(ToolPolicy(), layer('[tools.deny]\nshel = "no"\n'))
    with pytest.raises(PolicyError, match="did you mean 'shell'"):
        check_policy(policy, ToolRegistry.builtin())


def test_every_file_that_a_policy_extends_is_one_of_its_sources(write):
    base = write("", "base.toml")
    own = write('extends = "base.toml"', "own.toml")
    assert load_policy(own).sources == (str(base), str(own))
    shipped = load_policy(write('extends = "open"', "own.toml")).sources
    assert [path.rpartition("/")[2] for path in shipped] == [
        "default.toml",
        "open.toml",
        "own.toml",
    ]


@pytest.mark.parametrize(
    "line_of_it", ['writes = "[z-a]"', 'args = { path = { under = "\\u0000" } }']
)
def test_a_pattern_in_a_file_that_is_none_is_an_error_with_its_line(line_of_it):
    text = (
        f'version = 1\n[[rule]]\nid = "r"\ntool = "write_file"\ndecision = "allow"\n{line_of_it}\n'
    )
    with pytest.raises(PolicyError, match=r"p\.toml:[26]: rule 'r'"):
        parse_policy(text, "p.toml")
