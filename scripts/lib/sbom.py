"""The parts of the program as a CycloneDX document, from cargo's own list: what is linked in, not what only tests use."""

import json
import subprocess
import sys

version = sys.argv[1]
metadata = json.loads(
    subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu"],
        check=True,
        capture_output=True,
    ).stdout
)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = next(package["id"] for package in packages.values() if package["name"] == "pointsman")


def linked(node):
    """What a package is built from: no dependencies of tests."""
    for dependency in nodes[node]["deps"]:
        if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
            yield dependency["pkg"]


seen, left = set(), [root]
while left:
    node = left.pop()
    if node not in seen:
        seen.add(node)
        left.extend(linked(node))


def component(package):
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    part = {"type": "library", "name": package["name"], "version": package["version"], "purl": purl, "bom-ref": purl}
    if package.get("license"):
        part["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return part


parts = sorted((component(packages[node]) for node in seen if node != root), key=lambda part: part["bom-ref"])
dependencies = [
    {
        "ref": component(packages[node])["bom-ref"],
        "dependsOn": sorted({component(packages[other])["bom-ref"] for other in linked(node)}),
    }
    for node in sorted(seen)
]
document = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"component": dict(component(packages[root]), type="application", version=version)},
    "components": parts,
    "dependencies": dependencies,
}
json.dump(document, sys.stdout, indent=1)
print()
