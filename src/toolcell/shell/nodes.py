"""The nodes of shfmt's syntax tree and the fields that are known of each."""

from toolcell.shell.facts import Unreadable
from toolcell.shell.parser import Node

_COMMENTS = "Comments Last CondLast ThenLast DoLast"
_FIELDS = {
    name: frozenset([*fields.split(), *_COMMENTS.split(), "Type"])
    for name, fields in {
        "File": "Name Stmts",
        "Stmt": "Cmd Negated Background Redirs",
        "Assign": "Append Naked Name Index Value Array",
        "Redirect": "Op N Word Hdoc",
        "CallExpr": "Assigns Args",
        "Subshell": "Stmts",
        "Block": "Stmts",
        "IfClause": "Cond Then Else",
        "WhileClause": "Until Cond Do",
        "ForClause": "Select Loop Do",
        "WordIter": "Name Items",
        "CStyleLoop": "Init Cond Post",
        "BinaryCmd": "Op X Y",
        "FuncDecl": "RsrvWord Parens Name Body",
        "Word": "Parts",
        "Lit": "Value",
        "SglQuoted": "Dollar Value",
        "DblQuoted": "Dollar Parts",
        "CmdSubst": "Stmts Backquotes TempFile ReplyVar",
        "ParamExp": "Short Excl Length Param Index Slice Repl Names Exp",
        "Slice": "Offset Length",
        "Replace": "All Orig With",
        "Expansion": "Op Word",
        "ArithmExp": "Bracket X",
        "ArithmCmd": "X",
        "BinaryArithm": "Op X Y",
        "UnaryArithm": "Op Post X",
        "ParenArithm": "X",
        "CaseClause": "Word Items",
        "CaseItem": "Op Patterns Stmts",
        "TestClause": "X",
        "BinaryTest": "Op X Y",
        "UnaryTest": "Op X",
        "ParenTest": "X",
        "DeclClause": "Variant Args",
        "ArrayExpr": "Elems",
        "ArrayElem": "Index Value",
        "ExtGlob": "Op Pattern",
        "ProcSubst": "Op Stmts",
        "TimeClause": "PosixFormat Stmt",
        "CoprocClause": "Name Stmt",
        "LetClause": "Exprs",
    }.items()
}
_POSITION = {"Offset", "Line", "Col"}


def check(node: Node, kind: str) -> Node:
    """Return the node if all that it holds is known; raises Unreadable."""
    known = _FIELDS.get(kind)
    if known is None:
        raise Unreadable(f"the line uses {kind}, which toolcell does not know")
    for name, value in node.items():
        if name not in known and not (isinstance(value, dict) and value.keys() <= _POSITION):
            raise Unreadable(f"the line uses {name} of {kind}, which toolcell does not know")
    if not isinstance(node.get("Op", ""), str):
        raise Unreadable("the shell parser is too old; `pip install 'shfmt-py>=4.1'`")
    return node


def need(node: Node, name: str) -> Node:
    """Return a part that a node cannot be without; raises Unreadable where it is missing."""
    value = node.get(name)
    if not isinstance(value, dict):
        raise Unreadable(f"the line has a {node.get('Type', 'word')} without {name}")
    return value


def need_text(node: Node, name: str) -> str:
    """Return the text of a literal part; raises Unreadable where it is missing."""
    return str(need(node, name).get("Value", ""))
