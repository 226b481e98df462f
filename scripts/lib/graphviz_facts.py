"""Reduces what Graphviz reads of DOT files to facts that a test can compare: nodes, edges, subgraphs, attributes.

usage: graphviz_facts.py DIRECTORY_OF_DOT_FILES OUTPUT.json
"""

import json
import pathlib
import subprocess
import sys

# The layout adds these; the files do not use them.
LAYOUT = {
    "pos", "width", "height", "bb", "lp", "lwidth", "lheight", "rects", "vertices", "xdotversion", "head_lp", "tail_lp",
    "name", "_gvid", "nodes", "edges", "subgraphs", "tail", "head", "directed", "strict", "_subgraph_cnt", "objects",
    "headport", "tailport",
}


def attributes(thing):
    kept = {key: value for key, value in thing.items() if key not in LAYOUT and value != ""}
    # Graphviz gives every node a label that shows its name.
    return {key: value for key, value in kept.items() if (key, value) != ("label", "\\N")}


def edge_facts(nodes, edge):
    ends = [nodes[edge["tail"]]["name"], nodes[edge["head"]]["name"]]
    return [*ends, edge.get("tailport", ""), edge.get("headport", ""), attributes(edge)]


def facts(path):
    done = subprocess.run(["dot", "-Tdot_json", path], capture_output=True, check=False)
    if done.returncode != 0:
        return {"error": True}
    graph = json.loads(done.stdout)
    objects = graph.get("objects", [])
    # Subgraphs come first.
    count = graph.get("_subgraph_cnt", 0)
    subgraphs = [o for o in objects if o["_gvid"] < count]
    nodes = {o["_gvid"]: o for o in objects if o["_gvid"] >= count}
    return {
        # Graphviz makes a name up where there is none.
        "name": "" if graph["name"].startswith("%") else graph["name"],
        "strict": graph["strict"],
        "attributes": attributes(graph),
        "nodes": {node["name"]: attributes(node) for node in nodes.values()},
        "edges": sorted((edge_facts(nodes, edge) for edge in graph.get("edges", [])), key=json.dumps),
        "subgraphs": sorted(
            sorted(nodes[member]["name"] for member in subgraph.get("nodes", [])) for subgraph in subgraphs
        ),
    }


def main():
    directory, output = map(pathlib.Path, sys.argv[1:])
    found = {path.stem: facts(path) for path in sorted(directory.glob("*.dot"))}
    output.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


main()
