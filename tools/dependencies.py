#!/usr/bin/env python3
"""Licences, sources and duplicates of the dependencies by deny.toml: what `cargo deny check licenses bans sources` does, for machines without
cargo-deny, which test.sh builds where it can. Reads what `cargo metadata` tells, licences as crates declare them. Exits with 1 and a line for each fault."""

import collections
import json
import re
import subprocess
import sys
import tomllib


def allowed(expression, licences):
    """Whether an SPDX expression can be met: AND binds closer than OR; `/` is an old way to write OR."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def either():
        nonlocal at
        met = both()
        while at < len(words) and words[at] == "OR":
            at += 1
            met = both() or met
        return met

    def both():
        nonlocal at
        met = one()
        while at < len(words) and words[at] == "AND":
            at += 1
            met = one() and met
        return met

    def one():
        nonlocal at
        word = words[at]
        at += 1
        if word == "(":
            met = either()
            at += 1
            return met
        if at < len(words) and words[at] == "WITH":
            word = f"{word} WITH {words[at + 1]}"
            at += 2
        return word in licences

    met = either()
    return met and at == len(words)


# The only registry that crates may come from.
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def main():
    with open("deny.toml", "rb") as file:
        licences = set(tomllib.load(file)["licenses"]["allow"])
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"], stdout=subprocess.PIPE, check=True
    )
    packages = json.loads(metadata.stdout)["packages"]
    faults = []
    versions = collections.defaultdict(list)
    for package in packages:
        name = f"{package['name']} {package['version']}"
        versions[package["name"]].append(package["version"])
        if not allowed(package["license"] or "none", licences):
            faults.append(f"{name}: its licence {package['license']} is not allowed by deny.toml")
        if package["source"] not in (None, CRATES_IO):
            faults.append(f"{name}: it comes from {package['source']}")
        for need in package["dependencies"]:
            if package["source"] is None and need["req"] == "*" and "path" not in need:
                faults.append(f"{name}: it takes any version of {need['name']}")
    twice = {name: found for name, found in versions.items() if len(found) > 1}
    for name, found in sorted(twice.items()):
        print(f"told, not refused: {name} is there in versions {', '.join(found)}")
    for fault in faults:
        print(fault)
    print(f"{len(packages)} crates, {len(twice)} in several versions, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
