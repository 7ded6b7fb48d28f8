#!/usr/bin/env python3
"""The smallest reader of OpenTofu's encryption: key provider pbkdf2 with method aes_gcm, with openssl as its AES."""
import base64, hashlib, json, os, re, subprocess, sys

text = os.environ.get("TF_ENCRYPTION", "")
settings = re.fullmatch(r'key_provider "pbkdf2" "(\w+)" {\s*passphrase = "([^"$%\\]+)"\s*(?:iterations = (\d+)\s*)?'
                        r'(?:(?:(?:key_length|salt_length) = [1-9]\d*|hash_function = "sha(?:256|512)")\s*)*}\s*'
                        r'method "aes_gcm" "(\w+)" {\s*keys = key_provider\.pbkdf2\.\1\s*}\s*'
                        r'state {\s*method = method\.aes_gcm\.\4\s*}\s*', text)
if os.environ["CASE_KIND"] != "opentofu_state" or os.environ.keys() & {"CASE_CODE", "CASE_TASK"} or not settings:
    sys.exit(77)
passphrase = settings[2].encode()
if len(passphrase) < 16 or int(settings[3] or 600000) < 200000:
    sys.exit("the passphrase is too short, or there are too few iterations")


def aes(mode, key, data, *more):
    command = ["openssl", "enc", f"-aes-{len(key) * 8}-{mode}", "-nopad", "-K", key.hex(), *more]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def ghash(key, data):
    h, y = int.from_bytes(aes("ecb", key, bytes(16)), "big"), 0
    data += bytes(-len(data) % 16) + (8 * len(data)).to_bytes(16, "big")
    for i in range(0, len(data), 16):
        x, v, y = y ^ int.from_bytes(data[i:i + 16], "big"), h, 0
        for bit in range(127, -1, -1):
            y ^= v if x >> bit & 1 else 0
            v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
    return y.to_bytes(16, "big")


try:
    envelope = json.load(sys.stdin)
    meta = json.loads(base64.b64decode(envelope["meta"]["key_provider.pbkdf2." + settings[1]], validate=True))
    if meta["hash_function"] not in ("sha512", "sha256"):
        sys.exit("the hash function is another one")
    key = hashlib.pbkdf2_hmac(meta["hash_function"], passphrase, base64.b64decode(meta["salt"], validate=True),
                              meta["iterations"], meta["key_length"])
    data = base64.b64decode(envelope["encrypted_data"], validate=True)
    nonce, sealed, tag = data[:12], data[12:-16], data[-16:]
    pad = aes("ecb", key, nonce + (1).to_bytes(4, "big"))
    if envelope["encryption_version"] != "v0" or bytes(a ^ b for a, b in zip(ghash(key, sealed), pad)) != tag:
        sys.exit("the file is damaged, or this is not its passphrase")
    plain = aes("ctr", key, sealed, "-iv", (nonce + (2).to_bytes(4, "big")).hex())
    state = json.loads(plain)
    for name, kind in ("serial", int), ("lineage", str):
        outside = envelope.get(name)
        if outside is not None and (type(outside) is not kind or outside != "" and outside != state.get(name)):
            sys.exit(f"the {name} is another one outside, or none")
except (AttributeError, KeyError, TypeError, ValueError) as problem:
    sys.exit(f"this is not an encrypted state: {problem!r}")
sys.stdout.buffer.write(plain)
