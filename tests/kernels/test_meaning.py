"""Kernels of packages that run as one of this backend's own."""

import re

from conftest import ROOT

KNOWN = (ROOT / "src" / "ops" / "custom" / "meaning.cpp").read_text()


def fingerprint(kernel):
    """As fingerprint() of src/ops/custom/meaning.cpp."""
    comments = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
    parts = (kernel["header"], kernel["source"])
    text = "\n".join(re.sub(r"[ \n\t]", "", comments.sub("", x)) for x in parts)
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"0x{value:016x}"


def test_gated_delta(extracted):
    """The table has each kernel of the packages that is one: all but those with a
    mask and those that give every step's state."""
    found = {}
    for kernel in extracted:
        name = kernel["name"]
        if re.fullmatch("gated_delta_step(?!.*(mask|states)).*", name):
            found[fingerprint(kernel)] = f"{kernel['package']}: {name}"
    assert len(found) >= 4
    missing = {f: name for f, name in found.items() if f not in KNOWN}
    assert not missing, f"add to src/ops/custom/meaning.cpp: {missing}"
