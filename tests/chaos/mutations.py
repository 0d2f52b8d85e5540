"""How files are damaged: by bits, bytes, lines and JSON values, or by being something else altogether."""

import copy
import json
import os

TOKENS = [
    b"\0",
    b"\xff\xfe",
    b'"',
    b"\\ud800",
    b"NaN",
    b"1e999",
    b"-1",
    b"null",
    b"[]",
    b"{}",
    b"\r",
    b",",
    b"\n",
    b"=1+1",
]
VALUES = [
    None,
    True,
    0,
    -1,
    2**70,
    1e308,
    "",
    "x",
    "\x1b[2J",
    "\u202e",
    [],
    {},
    [[]],
    {"": {}},
    "9" * 5000,
    [0] * 100_000,
]


def bits(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def digit(rng, data):
    """Another digit: what is most likely to be read without complaint."""
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return bits(rng, data)
    at = rng.choice(places)
    return data[:at] + bytes([48 + (data[at] - 48 + rng.randrange(1, 10)) % 10]) + data[at + 1 :]


def cut(rng, data):
    return data[: rng.randrange(len(data))]


def remove(rng, data):
    begin = rng.randrange(len(data))
    return data[:begin] + data[begin + rng.randrange(1, 200) :]


def repeat(rng, data):
    begin = rng.randrange(len(data))
    end = begin + rng.randrange(1, 2000)
    return data[:end] + data[begin:end] + data[end:]


def insert(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) * rng.choice((1, 1, 3, 100_000)) + data[at:]


def lines(rng, data):
    """Lines removed, repeated or in another order."""
    found = data.splitlines(keepends=True)
    at, other = rng.randrange(len(found)), rng.randrange(len(found))
    kind = rng.randrange(3)
    if kind == 0:
        del found[at]
    elif kind == 1:
        found.insert(other, found[at])
    else:
        found[at], found[other] = found[other], found[at]
    return b"".join(found)


def ends(rng, data):
    return rng.choice((data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data, data + b"\n", data + b"x", b""))


def nested(rng, data):
    return rng.choice(
        (b"[" * 200_000, b'{"a":' * 100_000, json.dumps(dict.fromkeys(map(str, range(900_000)))).encode())
    )


def value(rng, data):
    """One value of a JSON document replaced, removed, renamed or added."""
    try:
        document = copy.deepcopy(json.loads(data))
    except ValueError:
        return bits(rng, data)
    node, key = _somewhere(rng, document)
    kind = rng.randrange(4)
    if node is None:
        return bits(rng, data)
    if kind == 0:
        node[key] = rng.choice(VALUES)
    elif kind == 1:
        del node[key]
    elif kind == 2 and isinstance(node[key], (int, float)):
        node[key] *= rng.choice((-1, 0, 1.000001, 1e10))
    elif isinstance(node, dict):
        node[rng.choice(("x", "alpha", "schema_version", "suite"))] = rng.choice(VALUES)
    else:
        node.append(node[key])
    return json.dumps(document, indent=1).encode()


def _somewhere(rng, document):
    node, key = None, None
    here = document
    while isinstance(here, (dict, list)) and here:
        node, key = here, rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        here = node[key]
        if rng.random() < 0.2:
            break
    return node, key


BYTES = (bits, bits, digit, digit, cut, remove, repeat, insert, lines, ends, value, value, nested)


def not_a_file(rng, path):
    """Something else in its place: nothing, a folder, a pipe, a device, a link to itself, a file without rights."""
    path.unlink()
    kind = rng.randrange(6)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.symlink_to(path)
    elif kind == 4:
        path.symlink_to("/dev/full")
    return ("folder", "pipe", "/dev/zero", "link to itself", "/dev/full", "nothing")[kind]


def mutate(rng, path):
    """Damage the file in one way, and say which."""
    if rng.random() < 0.06:
        return not_a_file(rng, path)
    data = path.read_bytes()
    how = rng.choice(BYTES)
    changed = how(rng, data)
    path.write_bytes(changed)
    return how.__name__ if changed != data else "nothing changed"
