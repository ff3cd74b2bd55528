"""Claims about programs in a line: which run others when told to, and where they write."""

import shutil
import subprocess

import pytest

from toolcell.shell.doubts import DOUBTED, doubt_about
from toolcell.shell.facts import Unknown, listed
from toolcell.shell.lines import read_line
from toolcell.shell.scripts import awk_danger, read_sed
from toolcell.shell.variables import danger


def doubted(text: str) -> bool:
    return any(command.doubt for command in read_line(text).commands)


def written(text: str) -> list[str | None]:
    return [write.path for write in read_line(text).writes]


AWK_RUNS = [
    'BEGIN { system("x") }',
    "BEGIN { system ( x ) }",
    '{ "date" | getline }',
    '{ print | "sh" }',
    '{ printf "%s", $0 |& "sh" }',
    '{ print > "f" }',
    "{ print $1, $2 > $3 }",
    '{ print >> "f" }',
    'BEGIN { f = "x"; @f() }',
    '@load "filefuncs"',
    '@include "x"',
    '{ getline < "f" }',
    '{ x = "a\\"b" | getline }',
    'BEGIN { i = 2; i++ / 2 | "sh"; 1 / 1 }',
    '{ print "unfinished }',
    "/unfinished { print }",
    '# comment\n{ print | "sh" }',
    "{ print /* no comment in awk */ | x }",
    'BEGIN { print 1 > "/dev/stderr2" }',
    'BEGIN { x = "" system("x") }',
    'BEGIN { x = 1system("x") }',
    'BEGIN { x = 0xfsystem("x") }',
    '{ print"x">"f" }',
    'BEGIN { print "a",\n"b" > "f" }',
    '{ print "a" \\\n > "f" }',
    'BEGIN { sys\\\ntem("x") }',
    '# comment \\\nBEGIN { system("x") }',
    '{ print /}/ > "f" }',
    '{ print "x" > "/dev/stderr" "x" }',
    '@ include "f"',
    '{ x = /"/; system("x"); y = /"/ }',
    '{ if (1) /"/; system("x"); /"/ }',
    '{ i++ /"/ 2; system("x"); a "/" }',
    '{ x = length /"/; system("x"); y = "/" }',
    'BEGIN { x = "/dev/stdout" / 2; system("x"); y = "a" / 2 }',
    "{ print } " * 4_000,
    "{ print (1) } " * 501,
    '/[/"]/ { system("x") } /"/',
    '/[]/"]/ { x = "" } END { system("x") } /"/',
    '/[^]/"]/ { x = "" } END { system("x") } /"/',
    '{ print(1) > "f" }',
]
AWK_DOES_NOT = [
    "{ print $1 }",
    "$1 > 5 { print }",
    "/a|b/ { n++ } END { print n }",
    'BEGIN { FS = "|" } { print $2 }',
    "$1 ~ /x|y/ || $2 !~ /z/",
    '{ if ($1 > 2 || $2 >= 3) print "a > b | c" }',
    '{ gsub(/a|b/, "|"); print }',
    "# system(x) | y\n{ print }",
    '{ print "x" > "/dev/stderr" }',
    'BEGIN { printf "%d\\n", 10 / 2 }',
    '{ a["x|y"] = 1 } END { for (k in a) print k }',
    "NR > 1 && NR < 5",
    "{ print (1) } " * 400,
    "{ print (a + b) / 2, (c + d) / 3, (e + f) / 4, (g + h) / 5, (i + j) / 6, (k + l) / 7 }",
    '{ print ($1 > 5) ? "a" : "b" }',
    '{ print (a + b) / 2 "/" c }',
    '/[0-9]+/ { print $1 "/" $2 }',
    "{ print length / 2; subsystem = 1 }",
    '{ print "x" > "/dev/stderr"\n  print "y" }',
    '{ gsub(/"/, ""); n = split($0, a, /[ \\/]/); print a[n] / 2 }',
    "{ if ($1 ~ /a/ ||\n $2 > 3) print }",
]


@pytest.mark.parametrize("code", AWK_RUNS)
def test_awk_code_that_can_run_or_write_is_in_doubt(code):
    assert awk_danger(code)


@pytest.mark.parametrize("code", AWK_DOES_NOT)
def test_ordinary_awk_code_is_not(code):
    assert not awk_danger(code)


@pytest.mark.parametrize(
    "text",
    [
        "awk -v x=1 '{print x}' f",
        "awk '/[]x]/ && /[^]]/ && /[^x]/' f",
        "awk -F '|' '{print $1}' f",
        "mawk 1 f",
        "gawk -S 'BEGIN{system(\"x\")}'",
        "gawk --sandbox '{print | \"x\"}'",
    ],
)
def test_ordinary_calls_of_awk_are_not(text):
    assert not doubted(text)


@pytest.mark.parametrize(
    "text",
    [
        *["awk -i x 1", "awk -l x 1", "awk --unheard 1", 'gawk -e "$x" f', "awk -f prog f"],
        *["mawk -W exec f", "mawk -We f", "gawk -W source=x", "gawk -E f", "awk -f //dev/stdin"],
        *["gawk -of 1", "gawk -d 1", "gawk -pf 1", "awk -S 'BEGIN{system(\"x\")}'"],
        "original-awk '-e1' 'BEGIN{system(\"x\")}'",
    ],
)
def test_calls_of_awk_that_load_more_are(text):
    assert doubted(text)


SED_PLAIN = [
    *[
        "s/a/b/",
        "s/a/b/g",
        "s|a|b|gI",
        "s,a,b,2p",
        "1,5p",
        "$d",
        "/x/d",
        "/a/,/b/p",
        "1~2d",
        "0,/x/d",
    ],
    *[
        "y/abc/def/",
        "n;d",
        "$!N",
        ":a;N;$!ba;s/x/y/g",
        "/x/!d",
        "2q",
        "=",
        "l",
        "a text",
        "i\\\ntext",
    ],
    *[":a\nN\nba", "/x/{s/a/b/;b};d", "$!{N;bx};:x", r"\,a\,b,p"],
    *["/x/{s/a/b/;p}", "/x/ { p }", "s/\\//x/", "\\|x|d", "# comment\np", "c\\\none\\\ntwo\np"],
    *[
        "s/e/w/",
        "/e/p",
        "1,3s/^/# /",
        "r other",
        "$a e at the end",
        "s/x/\\n/g;s/e$//",
        "G",
        "x;p;x",
    ],
]
SED_ODD = [
    *[
        "e",
        "1e id",
        "e id",
        "s/a/b/e",
        "s/a/b/ge",
        "s/a/b/we",
        "p;e id",
        "{e id\n}",
        "/x/e",
        "x;e id",
    ],
    *["s/a/b", "s/a", "1,2", "/x", "y/a/b", "v", "k", "s\na\nb\n", "$!{p;e id\n}", "s/a/b/pe"],
    *[":x e id", "tx e id", "b x e id", ":x}e id", r"\,a\|\,b,e id"],
]


@pytest.mark.parametrize("code", SED_PLAIN)
def test_ordinary_sed_scripts_are_understood(code):
    script = read_sed(code)
    assert (script.doubt, script.writes) == ("", [])


@pytest.mark.parametrize("code", [code for code in SED_ODD if code != "s/a/b/we"])
def test_sed_scripts_that_can_run_something_or_are_not_understood_are_in_doubt(code):
    assert read_sed(code).doubt


@pytest.mark.parametrize(
    ("code", "writes"),
    [
        ("w f", ["f"]),
        ("s/a/b/w f", ["f"]),
        ("p;W a b", ["a b"]),
        ("s/a/b/we", ["e"]),
        ("1w x\np", ["x"]),
    ],
)
def test_the_files_of_a_sed_script_are_found(code, writes):
    assert read_sed(code).writes == writes


@pytest.mark.parametrize("code", SED_PLAIN)
def test_sed_takes_these_scripts_and_runs_nothing(tmp_path, code):
    """The control: GNU's own --sandbox refuses every script that runs or writes."""
    (tmp_path / "in").write_text("x\n")
    done = subprocess.run(
        [shutil.which("sed") or "sed", "--sandbox", code.replace("r other", "p"), "in"],
        capture_output=True,
        cwd=tmp_path,
        text=True,
    )
    assert "sandbox" not in done.stderr
    assert done.returncode in (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "git -c core.editor=x commit",
        "git -c core.sshCommand=x fetch",
        "git -ccore.pager=x log",
        "git -C a -c diff.external=x diff",
        'git -c "$x" log',
        "git --exec-path=/x status",
        "git --git-dir /x status",
        "git --unheard-of push",
        "git config --global core.hooksPath /x",
        "git config set alias.x '!y'",
        "git config -e",
        "git config --add include.path x",
        "git clone -c core.fsmonitor=x u",
        "git clone ext::x",
        "git push --receive-pack=x",
        "git pull --upload-p x",
        "git rebase --exec x",
        "git rebase -i HEAD~2",
        "git mergetool",
        "git diff --ext-diff",
        "git fetch $x",
        "git fetch --upl=x .",
        "git clone --up=x . y",
        "git clone -qu x . y",
        "git clone --conf core.sshCommand=x u",
        "git clone --te=x u",
        "git init --te=x",
        "git ls-remote --uplo=x .",
        "git grep --op=x a",
        "git grep -nOx a",
        "git push --rece=x . b",
        "git push --exe=x . b",
        "git send-pack --exec=x u",
        "git fetch-pack --ex=x u",
        "git remote-ext o 'sh -c x'",
        "git config alias.z '!x' list",
        "git config alias.z '!x' get",
        "git config -f --list alias.z '!x'",
        "git config --add alias.z '!x'",
        "git config --rename-section user core",
        "git config --unheard-of user.name x",
        "git log $x",
        'git diff --output="$x"',
        'git log --outp="$(x)"',
    ],
)
def test_git_told_to_run_something_is_in_doubt(text):
    assert doubted(text)


@pytest.mark.parametrize(
    "text",
    [
        "git -c color.ui=always log",
        "git -c user.email=a@b -c commit.gpgsign=false commit -m x",
        "git -C sub --no-pager log",
        "git -P diff",
        "git config --get core.editor",
        "git config --list",
        "git config user.name 'A B'",
        "git config core.editor",
        "git config list",
        "git config get alias.z",
        "git config --unset core.editor",
        "git config --global user.name 'A B'",
        "git log -- $x",
        "git log --oneline --only x",
        'git log --format="$x" --author="$y"',
        "git clone --no-tags -b x u",
        "git clone --depth 1 https://h/x",
        "git push -u origin main",
        "git fetch --all --prune",
        "git rebase main",
        "git submodule update --init",
        "git bisect good",
        "git grep -n x",
        "git remote add o https://h/x",
        "git --version",
        "git",
        "git --exec-path",
        'git show "$x"',
        'git add "$f"',
    ],
)
def test_ordinary_git_is_not(text):
    assert not doubted(text)


@pytest.mark.parametrize(
    "text",
    [
        "tar cvzf FILES.tar.gz Images",
        "tar -cf IF.tar x",
        "tar --exclude=x -czf a.tgz .",
        'for f in *.tar; do tar xf "$f"; done',
        "tar tf a.tar",
        "tar xf a.tar --strip-components=1",
        "rsync -av --exclude=x --delete a b",
        "rsync -e ssh a h:b",
        "tar -cI zstd -f a b",
        "tar -cIzstd -f a b",
        "curl -H 'X-API-Key: K' u",
        "curl -sSLo K u",
        "wget -qO- u",
        "ssh -p 22 -i k h ls",
        "scp -r a h:b",
        "make -C sub CC=gcc all",
        "make -f Makefile.other",
        "zip -r -9 T.zip x",
        "sort -t, -k1 f",
        "split -b 10 f",
        "vim f",
        "less +10 f",
        "rg -e x --pretty",
        "npm run build -- --watch",
        "go test -run X ./...",
        "go build -o exec .",
        "go env GOPATH",
        "cmake --build . -- -j4",
        "cmake -D CMAKE_BUILD_TYPE=Debug .",
        "curl --connect-timeout 5 --compressed u",
        "wget --continue u",
        "man -k ls",
        "gdb --args x",
        "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release",
        "cmake --build build",
        'find . -name "$x"',
        'for f in a b; do sed -n p "$f"; done',
        "gcc -Wall -O2 -c x.c",
        "psql -d x -c 'select 1'",
        "sqlite3 x.db 'select t.log from t'",
        "sqlite3 x.db .tables",
        "openssl sha256 f",
        "crontab -l",
        "tmux ls",
        "sort --check --ignore-case f",
        "tar --checkpoint=1 --list -f a.tar",
        "tar --to-stdout -xf a.tar",
        "make -kj4 -C sub test V=1",
        "make --makefile Makefile.other",
        "npm test -- -c x",
        "npm test --silent --global",
        "npx prettier --config x",
        "compgen -A file",
        "jobs -l",
        "sqlite3 -json x.db 'select 1'",
        "go build -ldflags '-s -w'",
        "cargo test -- --nocapture",
    ],
)
def test_ordinary_use_of_programs_that_could_run_others_is_not_in_doubt(text):
    assert not doubted(text)


@pytest.mark.parametrize(
    "text",
    [
        "tar cIf 'sh x' a.tar .",
        "tar xFf x a.tar",
        "tar --use-compress-program='sh x' -xf a",
        "tar --to-com=x -xf a",
        "tar --checkpoint --checkpoint-action='exec=a b' -cf x .",
        "rsync -ae 'sh x' a b",
        "rsync --rsync-path=x a h:b",
        "ssh -vo ProxyCommand=x h",
        "ssh -F x h",
        "scp -S x a h:b",
        "sftp -oLocalCommand=x h",
        "curl -sK x",
        "wget --execute=x u",
        "make -f - all",
        "make --file=- all",
        "vim +'!x' f",
        "vim -S x",
        "ex -sc '!x' f",
        "emacs --batch -l x",
        "go vet -vettool=x ./...",
        "rg --pre=x a",
        "gcc -wrapper x,y f.c",
        "cargo --config x build",
        "sqlite3 x.db '.sys id'",
        "sqlite3 x.db 'select 1;\n.shell id'",
        "sqlite3 -cmd '.shell id' x.db",
        "psql -c \"copy t from PROGRAM 'id'\"",
        "mysql -e '\\! id'",
        "find . -name x $y",
        "find . -name $x",
        'y=-exec; find . -name -name "$y" x {} +',
        'y=-e1ex; sed -n p "$y" f',
        "sed -n p $y",
        "batch",
        "at",
        "awk -f - < x",
        "awk -f <(x) f",
        "sed -f /dev/stdin f",
        "sed -f x f",
        "sed --file=x f",
        "fd . $x",
        'd=-delete; find "$d"',
        "tar xf $x",
        "rsync * h:x",
        "at -f x now",
        "hash -p x ls",
        "sort --co=x a",
        "sort --compress-program x a",
        "tar --use=x -cf a b",
        "tar --use-compress-program=sh -cf a b",
        "tar -cFI zstd a b",
        "tar -cFIzstd a b",
        "rsync -ee ssh a b",
        "tar --inf=x -cf a b",
        "tar --new-=x -cf a b",
        "tar --to-c=x -xf a",
        "tar --index-file=x -cf a b",
        "tar --one-top-level=x -xf a",
        "tar --remove-files -cf a b",
        "tar -cg x -f a b",
        "tar 0cIf x a b",
        "tar --transform=s,a,b, -xf a",
        'x=If; tar "c$x" y a b',
        "npm test --script-s=x",
        "npm test -script-shell=x",
        "npm exec -c x",
        "npm x --cal x",
        "npx -c x",
        "npm test $x",
        "make SHELL:=x",
        "make X!=x",
        "make 'CFLAGS=$(shell x)'",
        "make -- SHELL=x",
        "make --make=-",
        "make --fil=-",
        "make -kf-",
        "make --makefile=/dev/fd/0",
        "make -f /dev/./stdin",
        "make -C /dev -f stdin",
        "make -f <(x)",
        "make --eva=x",
        "make --unheard-of",
        "compgen -bC x",
        "compgen -abW '$(x)'",
        "jobs -rx x",
        "sqlite3 x.db",
        "bsdtar --use-comp=x -cf a b",
        "man --pa=x ls",
        "zip a b -T --unzip-c x",
        "curl --conf x u",
        "wget --exe=x u",
        "mysql --pag=x",
        "openssl req --config x",
        "sftp -b x h",
        "gdb --com=x",
        "cmake -P x",
        "cmake --build . -- SHELL=x",
        "cmake -D CMAKE_MAKE_PROGRAM=x .",
        "go env -w CC=x",
        "sqlite3 -separator ' ' 'x y'",
        "ed f",
        "red f",
        "ex f",
        "go test -exec=x",
        "go build -toolexec x",
        "go build -ldflags '-extld=x'",
        "go test $x",
        "cargo rustc -- -C linker=x",
        "cargo build $x",
    ],
)
def test_programs_told_to_run_others_are_in_doubt(text):
    assert doubted(text)


def test_a_word_that_begins_safely_is_no_option():
    assert doubt_about(("tar", "cf", "x", Unknown.ANY), suspect=False)
    assert doubt_about(("tar", "cf", "x", Unknown.ONE), suspect=True)
    assert not doubt_about(("tar", "cf", "x", Unknown.ONE), suspect=False)
    assert not doubt_about(("tar", "cf", "x", Unknown.SAFE), suspect=True)
    assert not doubt_about(("tar", "cf", "x", "--", Unknown.ANY), suspect=True)


READ_COMMANDS = {"at", "batch", "crontab", "fc", "complete", "ed", "red", "ex", "sqlite3"}


@pytest.mark.parametrize("name", sorted(DOUBTED - READ_COMMANDS))
def test_no_program_is_in_doubt_for_its_name_alone(name):
    assert not doubt_about((name, "p"), suspect=False) or name == "tmux"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("tee -a x y", ["x", "y"]),
        ("touch -r ref x", ["x"]),
        ("mkdir -pm 755 x", ["x"]),
        ("rm -- -x", ["-x"]),
        ("cp a b", ["b", "b/a"]),
        ("cp -rt d a", ["d", "d/a", None]),
        ("cp --parents a/b d", ["d", "d/b", "d/a/b"]),
        ("mv a b", ["a", "b", "b/a"]),
        ("ln -s a", ["a"]),
        ("ln a b", ["b", "b/a", "a"]),
        ("install -D -m 644 a b", ["b", "b/a"]),
        ("dd if=a of=b", ["b"]),
        ('dd if=a of="$x"', [None]),
        ("chmod -R u+x a", ["a"]),
        ("chmod -x a", ["a"]),
        ("chown --reference=r a", ["a"]),
        ("sed -n p f", []),
        ("sed -Ei.bak -e p f g", ["f", "g", "f.bak", "g.bak"]),
        ("sed -i'.git/hooks/*' p f", ["f", None]),
        ("sed --in-place p f", ["f"]),
        ("sed -n -e 'w x' f", ["x"]),
        ("perl -i -ne p f", ["f"]),
        ("perl -ne p f", []),
        ("rsync -a a/ b", ["b", "b/a", None]),
        ("rsync a h:b", []),
        ("scp h:a .", [".", "h:a"]),
        ("sort -o x a", ["x"]),
        ("sort -ox a", ["x"]),
        ("sort --output=x a", ["x"]),
        ("curl u", []),
        ("curl -o x -D y u", ["x", "y"]),
        ("curl -sOJ http://h/x", ["x", None]),
        ("curl -o - u", []),
        ("curl --unheard x u", ["x", "u"]),
        ("wget http://h/a/b", ["b"]),
        ("wget http://h", ["index.html"]),
        ("wget -P d -o log http://h/x", ["log", "d/x"]),
        ("wget -r http://h/", ["."]),
        ("tar tf a", []),
        ("tar cf - a", []),
        ("tar rf a.tar b", ["a.tar"]),
        ("tar -x -f a -C d", ["d", None]),
        ("tar --extract --file=a --dir=d", ["d", None]),
        ("tar xPf a", [None]),
        ("unzip -l a", []),
        ("unzip a -d d", ["d", None]),
        ("zip a b", ["a"]),
        ("gunzip a.gz", ["a.gz", "a"]),
        ("gzip -c a", []),
        ("split a", ["xaa"]),
        ("patch f", ["f"]),
        ("patch --dry-run f", []),
        ("patch -d d f", ["d/f"]),
        ("patch -d d", [None]),
        ("cp -l a b", ["b", "b/a", "a"]),
        ("cp -al a b", ["b", "b/a", "a", None]),
        ("cp a b c", ["c", "c/a", "c/b"]),
        ("rsync -rv a b", ["b", "b/a", None]),
        ("rsync -v a b", ["b", "b/a"]),
        ("rsync --log-file x a b", ["x", "b", "b/x", "b/a"]),
        ("rsync --log-file=x a h:b", ["x"]),
        ("tar cbf 20 x a", ["20", "x"]),
        ("git fast-export --export-marks=x", ["x"]),
        ("cpio -i", [".", None]),
        ("cpio -oF x", ["x"]),
        ("ar q x a", ["x", "a"]),
        ("ar t x", []),
        ("ar x a.a", [None]),
        ("mktemp", []),
        ("mktemp -p d", ["d/new"]),
        ("mktemp --tmpdir=d x", ["d/x"]),
        ("mktemp -d x", ["x"]),
        ("tar --create --fil=x a", ["x"]),
        ("find . -execdir sed -i p x {} +", [None, "x"]),
        ("find . -execdir ls {} +", []),
        ("find a b -name x -delete", ["a", "b"]),
        ("find a ../b -delete", ["a", "../b", None]),
        ("find ./ -delete", [".", None]),
        ("find a/../.. -delete", ["..", "a/../..", None]),
        ("find -delete", [".", None]),
        ("find . -fprintf x %p", ["x"]),
        ("uniq a", []),
        ("uniq -c a b", ["b"]),
        ("gcc -o a b", ["a"]),
        ("git diff --output=x", ["x"]),
        ("git diff --output x", ["x"]),
        ("git log --outp x", ["x"]),
        ("git log --oneline x", []),
        ("git -C a -C b show --output=x", ["a/b/x"]),
        ("git archive -o x HEAD", ["x"]),
        ("git archive -v9o x HEAD", ["x"]),
        ("git format-patch -o x HEAD", ["x", None]),
        ("git bundle create x HEAD", ["x", "HEAD"]),
        ("git bundle verify x", []),
        ("git checkout-index --prefix=x/ a", ["x", None]),
        ("git config user.name x", [".git/config"]),
        ("git config -f x user.name x", ["x"]),
        ("git -C a config user.name x", ["a/.git/config"]),
        ("git config --get user.name", []),
        ("git config --global user.name x", []),
        ("sort --ou x a", ["x"]),
        ("sort --o=x a", ["x"]),
        ("iconv --outp=x a", ["x"]),
        ("shuf --out=x a", ["x"]),
        ("openssl rand --out x 4", ["x"]),
        ("openssl req -outform PEM", []),
        ("go build -o=x -overlay y", ["x"]),
        ("ssh-keygen -qf x", ["x"]),
        ("truncate -s0 $x", [None]),
        ("cp $x d", ["d", None]),
        ("touch ~/x", [None]),
        ("gcp a b", ["b", "b/a"]),
        ("/bin/rm x", ["x"]),
        ("sponge x", ["x"]),
        ("xxd -r a b", ["b"]),
        ("history -w x", ["x"]),
        ("history -a", [None]),
        ("history -s x", []),
        ("cat a", []),
        ("echo rm x", []),
    ],
)
def test_where_programs_write_is_known(text, places):
    assert written(text) == places


def test_an_option_that_is_not_known_makes_every_word_a_place():
    assert written("cp --unheard-of=c a b") == ["c", "a", "b"]
    assert written("tee --unheard-of a") == ["a"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/x"),
        ("LD_PRELOAD", "x"),
        ("IFS", "_"),
        ("GIT_SSH", "x"),
        ("MANPAGER", "x"),
        ("EDITOR", "vim"),
        ("PAGER", "cat;x"),
        ("LESS", "+!x"),
        ("PYTHONHOME", "x"),
        ("CC", "./x"),
        ("PYTHONWARNINGS", "error::x.Y"),
        ("NODE_OPTIONS", "-r x"),
        ("PAGER", Unknown.ANY),
        ("CFLAGS", "-O2 -fplugin=./x.so"),
        *(
            (name, "./x")
            for name in listed(
                "COMPILER_PATH GCC_EXEC_PREFIX LESSKEY LESSKEYIN LESSKEY_CONTENT MANROFFOPT"
                " AWKLIBPATH AWKPATH PSQLRC UNZIPOPT ZIPINFOOPT LD_AUDIT PYTHONSTARTUP"
                " MAKEFLAGS MAKEFILES RUSTC_WRAPPER CARGO_BUILD_RUSTC GOFLAGS JAVA_TOOL_OPTIONS"
                " _JAVA_OPTIONS PERL5OPT RUBYOPT TAR_OPTIONS RSYNC_RSH SSH_ASKPASS GIT_ASKPASS"
                " BROWSER npm_config_script_shell PIP_INDEX_URL CMAKE_C_COMPILER_LAUNCHER CXX"
                " SHELL LDFLAGS CPATH CCACHE_PREFIX TEXINPUTS HGRCPATH ANSIBLE_CONFIG"
                " PERLLIB GUILE_LOAD_PATH PHP_INI_SCAN_DIR TF_CLI_ARGS_apply"
            )
        ),
    ],
)
def test_variables_that_change_what_runs_are_dangerous(name, value):
    assert name in danger(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FOO", "/x"),
        ("PAGER", "cat"),
        ("EDITOR", "true"),
        ("LESS", "-FRX"),
        ("LC_ALL", "C"),
        ("PYTHONUNBUFFERED", "1"),
        ("CC", "clang-17"),
        ("CFLAGS", "-O2 -g -Wall -std=c++17 -DX=1"),
        ("CGO_ENABLED", "0"),
        ("GIT_TRACE", "1"),
        ("MYPATH", "x"),
        ("MAKEFLAGS", "-j8"),
        ("GIT_AUTHOR_NAME", Unknown.SAFE),
        ("PWD", "x"),
        ("path", "x"),
    ],
)
def test_variables_that_change_nothing_are_not(name, value):
    assert danger(name, value) == "" or isinstance(value, Unknown)
