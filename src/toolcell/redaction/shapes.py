"""Shapes: what tokens look like, where whoever issues them made them easy to recognise.

A careful person reads `sk-...`, `ghp_xxxxxxxx` or `postgres://user:${PASSWORD}@host` and sees
that nothing is in there; so do these. Not among them are assignments such as `password = x`,
which are mostly code, and tokens without a mark of their own (Twilio, Discord's bots, 32
hexadecimal digits of anything): name the variable that holds such a secret in the policy.
"""

import base64
import json
import re

from toolcell.redaction.shape import CREDENTIAL, LEFT, LINE, RIGHT, Place, prefixed, shape, varied

# Between a key and its value, in an assignment, a header, JSON, or JSON inside a string.
_IS = rb"[\\\"' \t]{0,8}[:=>]{1,2}[\\\"' \t]{0,8}"

_PLACEHOLDERS = frozenset(b"password passwd passphrase pass pwd pw secret token redacted".split())


def _password(secret: bytes) -> bool:
    plain = secret.strip(b"*xX.<>[]{}")
    return len(plain) > 0 and plain.lower() not in _PLACEHOLDERS


def _basic(credentials: bytes) -> bool:
    """Whether it is a user and a password (RFC 7617, section 2)."""
    try:
        return ":" in base64.b64decode(credentials, validate=True).decode()
    except ValueError:
        return False


def _jose(token: bytes) -> bool:
    """Whether the first part is a JOSE header (RFC 7515, section 4)."""
    head = token.partition(b".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


_BREAK = rb"(?:[\s\"',|#*>]|\\++[nrt]){1,80}+"
_GAP = rb"(?:[\s\"',|#*>]|\\++[nrt]){0,80}+"
_BASE64 = rb"[A-Za-z0-9+/=]"
_HEADER = _BREAK + rb"[A-Za-z-]{3,20}: [\x20-\x5b\x5d-\x7e]{1,200}+"
_END = _GAP + rb"-----END [A-Z0-9 ]{0,40}+-----"
_PRIVATE_KEY = b"".join(
    [
        rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        rb"(?:" + _HEADER + rb"){0,4}+",
        # Whole lines, at least one: `-----BEGIN PRIVATE KEY-----` alone is no secret.
        rb"(?:" + _GAP + _BASE64 + rb"{40,}+)++",
        # The last lines are shorter. Where no end says so, only one that is no word is taken.
        rb"(?:(?:" + _BREAK + _BASE64 + rb"{1,80}+){0,3}+" + _END,
        rb"|" + _BREAK + _BASE64 + rb"{16,}+",
        rb"|" + _BREAK + _BASE64 + rb"{1,15}\Z)?",
    ]
)
_PRIVATE_KEY_GOES_ON = re.compile(
    rb"(?:(?!-----(?:BEGIN|END) )[A-Za-z0-9+/=\s\"',.:;()|#*>\\-])*+"
    rb"(?:-----END [A-Z0-9 ]*+-{0,4})?\Z"
)

SHAPES = (
    # Cloud keys
    shape(
        "aws access key id",
        b"akia",
        b"asia",
        # AWS writes its examples with EXAMPLE at the end.
        pattern=LEFT + rb"(?:AKIA|ASIA)(?![A-Z2-7]{9}EXAMPLE)[A-Z2-7]{16}" + RIGHT,
    ),
    shape(
        "aws secret access key",
        b"secret_access_key",
        b"secretaccesskey",
        pattern=rb"(?i:secret_?access_?key)" + _IS + rb"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=\xff])",
        is_real=lambda key: varied(key) and not key.endswith(b"EXAMPLEKEY"),
        place=Place.BESIDE,
        goes_on=LINE,
    ),
    shape(
        "aws session token",
        b"session_token",
        b"sessiontoken",
        b"security-token",
        pattern=rb"(?i:session_?token|security-token)" + _IS + rb"([A-Za-z0-9/+%]{100,}+={0,2})",
        place=Place.BESIDE,
        goes_on=LINE,
    ),
    shape(
        "google api key",
        b"aiza",
        pattern=LEFT + rb"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_\xff-])",
    ),
    prefixed("google oauth secret", b"GOCSPX-", then=rb"[A-Za-z0-9_-]{24,}"),
    prefixed("google oauth token", b"ya29.", b"1//0", then=rb"[A-Za-z0-9_.-]{30,}"),
    shape(
        "azure account key",
        b"accountkey",
        b"sharedaccesskey",
        pattern=rb"(?i:accountkey|sharedaccesskey)" + _IS + rb"([A-Za-z0-9+/]{40,}+={0,2})",
        place=Place.BESIDE,
        goes_on=LINE,
    ),
    shape(
        "azure client secret",
        b"q~",
        pattern=rb"(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,}",
    ),
    shape(
        "signature in a URL",
        b"sig=",
        b"-signature=",
        pattern=rb"(?i:(?<=[?&;])sig|-signature)=([A-Za-z0-9%/+_-]{40,}+=?)",
    ),
    prefixed("digitalocean token", b"dop_v1_", b"doo_v1_", b"dor_v1_", then=rb"[a-f0-9]{64}"),
    prefixed("databricks token", b"dapi", then=rb"[a-f0-9]{32}(?![A-Za-z0-9\xff])"),
    prefixed("vault token", b"hvs.", b"hvb.", b"hvr.", then=rb"[A-Za-z0-9_-]{24,}"),
    # Source forges and registries
    prefixed(
        "github token",
        *(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
        then=rb"[A-Za-z0-9]{36,}",
    ),
    prefixed("github token", b"github_pat_", then=rb"[A-Za-z0-9_]{36,}"),
    prefixed(
        "gitlab token",
        *(b"glpat-", b"gldt-", b"glrt-", b"glcbt-", b"glptt-", b"glft-", b"glimt-", b"glagent-"),
        *(b"gloas-", b"glsoat-"),
        then=rb"[A-Za-z0-9_.-]{20,}",
    ),
    prefixed("atlassian token", b"ATATT3", b"ATCTT3", then=rb"[A-Za-z0-9_=-]{60,}"),
    prefixed("bitbucket app password", b"ATBB", then=rb"[A-Za-z0-9]{28,}"),
    prefixed("npm token", b"npm_", then=rb"[A-Za-z0-9]{36,}"),
    prefixed("pypi token", b"pypi-AgE", then=rb"[A-Za-z0-9_-]{50,}"),
    prefixed("docker hub token", b"dckr_pat_", b"dckr_oat_", then=rb"[A-Za-z0-9_-]{20,}"),
    # Model providers
    prefixed(
        "openai key",
        *(b"sk-proj-", b"sk-svcacct-", b"sk-admin-"),
        then=rb"(?=[A-Za-z_-]{0,80}[0-9])[A-Za-z0-9_-]{40,}",
    ),
    # Without hyphens, of which names of CSS classes have many; other providers use it too.
    prefixed("model provider key", b"sk-", then=rb"[A-Za-z0-9]{32,}"),
    prefixed("anthropic key", b"sk-ant-", then=rb"[A-Za-z0-9_-]{24,}"),
    prefixed("openrouter key", b"sk-or-v1-", then=rb"[a-f0-9]{64}"),
    prefixed("hugging face token", b"hf_", b"api_org_", then=rb"[A-Za-z0-9]{34,}"),
    prefixed("groq key", b"gsk_", then=rb"[A-Za-z0-9]{48,}"),
    prefixed("xai key", b"xai-", then=rb"[A-Za-z0-9]{60,}"),
    prefixed("replicate token", b"r8_", then=rb"[A-Za-z0-9]{37,}"),
    prefixed("perplexity key", b"pplx-", then=rb"[A-Za-z0-9]{40,}"),
    prefixed("langsmith key", b"lsv2_pt_", b"lsv2_sk_", then=rb"[a-f0-9]{32}_[a-f0-9]{10}"),
    # Services
    prefixed(
        "stripe key",
        b"sk_live_",
        b"sk_test_",
        b"rk_live_",
        b"rk_test_",
        b"whsec_",
        then=rb"[A-Za-z0-9+/]{16,}",
    ),
    shape(
        "slack token",
        b"xox",
        b"xapp-",
        pattern=LEFT + rb"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[0-9][A-Za-z0-9-]{20,}",
    ),
    shape(
        "webhook URL",
        b"hooks.slack.com/",
        b"/api/webhooks/",
        pattern=rb"(?:hooks\.slack\.com/[a-z]{1,16}|/api/webhooks/[0-9]{15,20})/([A-Za-z0-9/_-]{20,})",
    ),
    prefixed("sendgrid key", b"SG.", then=rb"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    shape(
        "telegram bot token",
        b":aa",
        pattern=rb"(?<=[0-9]{8}):(AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_\xff-])",
    ),
    # Whatever is issued in a standard form
    shape(
        "jwt",
        b"eyj",
        pattern=rb"(?:(?<![A-Za-z0-9_.\xff-])|(?<=\\[nrt]))"
        rb"eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){1,3}\.[A-Za-z0-9_-]{16,}+",
        is_real=_jose,
    ),
    shape(
        "private key",
        b"-----begin ",
        pattern=_PRIVATE_KEY,
        is_real=lambda _: True,
        place=Place.BESIDE,
        goes_on=_PRIVATE_KEY_GOES_ON,
    ),
    prefixed("age secret key", b"AGE-SECRET-KEY-1", then=rb"[A-Z0-9]{58}"),
    shape(
        "password in a URL",
        b"://",
        pattern=rb"://[^\x00-\x20/:@?#\"'<>\\\xff]{0,256}+:(?!\$[A-Za-z_{(]|\{|%[s(])"
        rb"([^\x00-\x20/\"'<>\\\xff]{1,512})@(?=[\w\[$%{])",
        is_real=_password,
        place=Place.ALONE,
        goes_on=re.compile(rb"[^\s/\"'<>\\]*+\Z"),
    ),
    shape(
        "bearer token",
        b"bearer",
        pattern=rb"(?i:bearer)(?:[ \t]{1,4}|%20)"
        rb"(?=[A-Za-z._~+/=-]{0,255}[0-9])([A-Za-z0-9._~+/=-]{20,})",
        place=Place.BESIDE,
        goes_on=CREDENTIAL,
    ),
    shape(
        "authorization header",
        b"authorization",
        b"x-api-key",
        pattern=rb"(?i:authorization" + _IS + rb"(?:token|api-?key)[ \t]|x-api-key" + _IS + rb")"
        rb"(?=[A-Za-z._~+/=-]{0,255}[0-9])([A-Za-z0-9._~+/=-]{20,})",
        place=Place.BESIDE,
        goes_on=LINE,
    ),
    shape(
        "user and password",
        b"basic ",
        pattern=rb"(?i:basic) {1,4}([A-Za-z0-9+/]{6,}+={0,2}+)(?!\xff)",
        is_real=_basic,
        place=Place.ALONE,
        goes_on=CREDENTIAL,
    ),
)
