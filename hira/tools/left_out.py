"""Files that are not documents: neither indexed in folders nor readable by programs, unless named explicitly."""

from collections.abc import Collection
from fnmatch import translate

from hira.core.patterns import compile_lazily

# dependencies and caches
FOLDERS = frozenset(["node_modules", "__pycache__", "__MACOSX", "site-packages"])
# files that every folder of `hira eval` holds: questions, known answers, and the replies
_EVALUATION = frozenset(["plan.json", "records.jsonl"])
# the usual names of such files, in lower case
_KEY_FILES = (
    *("hira.toml", "credentials", "credentials.*", "application_default_credentials.json", "secrets.*", "*.env"),
    *(".env", ".env.*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx"),
)
_KEY_FILE = compile_lazily("|".join(map(translate, _KEY_FILES)))


def holds_keys(name: str) -> bool:
    """Return whether a file of this name usually holds keys or passwords.

    >>> holds_keys("hira.toml"), holds_keys("server.PEM"), holds_keys("id_rsa.pub")
    (True, True, False)
    """
    return _KEY_FILE.match(name.lower()) is not None


def is_evaluation(names: Collection[str]) -> bool:
    """Return whether a folder with these names is that of an evaluation, which would answer from its own answers."""
    return _EVALUATION.issubset(names)
