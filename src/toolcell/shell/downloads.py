"""Downloads: where curl and wget put what they fetch."""

import posixpath
from urllib.parse import urlsplit

from toolcell.shell.facts import Unknown, Word, Words
from toolcell.shell.options import read, spec
from toolcell.shell.places import Places, everything, within

_CURL = spec(
    "-#0123469aBfgGIijJklLMnNOpqRsSvVZ -A: -b: -c: -C: -d: -D: -e: -E: -F: -h: -H: -K: -m: -o: -P:"
    " -Q: -r: -t: -T: -u: -U: -w: -x: -X: -y: -Y: -z: --output: --remote-name --remote-name-all"
    " --output-dir: --create-dirs --location --silent --show-error --fail --fail-with-body"
    " --header: --data: --data-raw: --data-binary: --data-urlencode: --json: --form: --request:"
    " --user: --user-agent: --referer: --cookie: --cookie-jar: --dump-header: --max-time:"
    " --connect-timeout: --retry: --retry-delay: --retry-all-errors --compressed --insecure"
    " --include --head --verbose --progress-bar --no-progress-meter --url: --write-out:"
    " --upload-file: --get --globoff --http1.1 --http2 --ipv4 --ipv6 --proxy: --cacert: --cert:"
    " --key: --resolve: --trace: --trace-ascii: --stderr: --etag-save: --etag-compare:"
    " --remote-header-name --parallel --no-buffer --libcurl: --hsts: --alt-svc: --max-redirs:"
    " --proto: --tlsv1.2 --tlsv1.3 --speed-limit: --speed-time: --limit-rate: --range:"
    " --continue-at: --config: --version --help: --location-trusted --netrc --oauth2-bearer:"
)
_CURL_FILES = (
    *("o", "output", "c", "cookie-jar", "D", "dump-header", "trace", "trace-ascii", "stderr"),
    *("etag-save", "libcurl", "hsts", "alt-svc"),
)


def curled(words: Words) -> Places:
    """`curl`: the files that its options name, and with -O one named as the URL ends."""
    found = read(words[1:], _CURL, permute=True)
    if found.unknown:
        return everything(words)
    places = [each for each in found.values(*_CURL_FILES) if each != "-"]
    if found.has("O", "remote-name", "remote-name-all"):
        places += [_name_of(url) for url in [*found.operands, *found.values("url")]]
    if found.has("J", "remote-header-name"):
        places.append(Unknown.ANY)
    directories = found.values("output-dir")
    return [within(directories[-1], each) for each in places] if directories else places


def _name_of(url: Word) -> Word:
    if isinstance(url, Unknown):
        return Unknown.ANY
    try:
        path = urlsplit(url if "//" in url else f"//{url}").path
    except ValueError:
        return Unknown.ANY
    return posixpath.basename(path) or "index.html"


_WGET = spec(
    "-46bcdEFHhKkLmNpqrSVvx -A: -a: -B: -D: -e: -I: -i: -l: -o: -O: -P: -Q: -R: -T: -t: -U:"
    " -w: -X: -n: --output-document: --output-file: --append-output: --directory-prefix: --quiet"
    " --no-verbose --no-clobber --continue --no-check-certificate --timeout: --tries: --header:"
    " --user-agent: --user: --password: --recursive --level: --no-parent --mirror --spider"
    " --show-progress --post-data: --post-file: --method: --body-data: --input-file:"
    " --content-disposition --no-directories --accept: --reject: --wait: --save-cookies:"
    " --load-cookies: --max-redirect: --progress: --timestamping --page-requisites"
    " --convert-links --span-hosts --domains: --execute: --no-cache --limit-rate: --server-response"
)


def fetched(words: Words) -> Places:
    """`wget`: a file named as the URL ends, or where its options say."""
    found = read(words[1:], _WGET, permute=True)
    if found.unknown:
        return everything(words)
    logs = found.values("o", "output-file", "a", "append-output", "save-cookies")
    documents = found.values("O", "output-document")
    if documents or found.has("spider"):
        return [each for each in [*logs, *documents] if each != "-"]
    directory = [*found.values("P", "directory-prefix"), "."][0]
    if found.has("r", "recursive", "m", "mirror", "p", "page-requisites", "i", "input-file"):
        return [*logs, directory]
    return [*logs, *(within(directory, _name_of(url)) for url in found.operands)]
