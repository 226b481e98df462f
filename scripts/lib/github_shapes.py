"""Reduces GitHub's descriptions of its API to what we ask and read. Called by scripts/github-shapes."""
import glob
import json
import os
import re
import sys

WORK, OUT = sys.argv[1:]
DOCUMENTS = "crates/pointsman-adapters/src/forge/github/board/*.graphql"
R = "/repos/{owner}/{repo}"
# What we ask.
OPERATIONS = [
    "GET /user", "GET /app", f"GET {R}", f"GET {R}/installation",
    "POST /app/installations/{installation_id}/access_tokens",
    f"GET {R}/issues", f"GET {R}/issues/{{issue_number}}", f"PATCH {R}/issues/{{issue_number}}", f"POST {R}/issues",
    f"GET {R}/issues/{{issue_number}}/comments", f"POST {R}/issues/{{issue_number}}/comments",
    f"GET {R}/issues/{{issue_number}}/labels", f"POST {R}/issues/{{issue_number}}/labels",
    f"DELETE {R}/issues/{{issue_number}}/labels/{{name}}",
    f"GET {R}/labels", f"GET {R}/labels/{{name}}", f"POST {R}/labels",
    f"GET {R}/collaborators/{{username}}/permission", f"GET {R}/branches/{{branch}}", f"GET {R}/activity",
    f"GET {R}/pulls", f"POST {R}/pulls", f"GET {R}/pulls/{{pull_number}}", f"PATCH {R}/pulls/{{pull_number}}",
    f"GET {R}/pulls/{{pull_number}}/reviews", f"POST {R}/pulls/{{pull_number}}/reviews",
    f"GET {R}/pulls/{{pull_number}}/reviews/{{review_id}}/comments",
    f"PUT {R}/pulls/{{pull_number}}/reviews/{{review_id}}/dismissals",
    f"GET {R}/compare/{{basehead}}", f"GET {R}/commits/{{commit_sha}}/pulls",
    f"PUT {R}/pulls/{{pull_number}}/merge-async", f"GET {R}/pulls/{{pull_number}}/merge-async/{{uuid}}",
    f"GET {R}/issues/{{issue_number}}/events", f"GET {R}/rules/branches/{{branch}}", f"GET {R}/rulesets/{{ruleset_id}}",
    f"GET {R}/check-runs/{{check_run_id}}/annotations",
    f"GET {R}/commits/{{ref}}/status", f"GET {R}/commits/{{ref}}/check-runs", f"POST {R}/statuses/{{sha}}",
]
# What we read of the answers, at any depth.
READ = set("""id login name full_name permissions push pull has_issues has_pull_requests archived number title body state user
labels assignee assignees comments created_at updated_at pull_request commit sha ref repo merged merged_at merge_commit_sha
head base commit_id submitted_at path line original_line position original_position context total_count statuses check_runs
status conclusion permission slug token expires_at details message uuid auto_merge stack draft event type ruleset_id
current_user_can_bypass output annotations_count start_line end_line annotation_level actor after""".split())
DEPTH = 5
# Interfaces with so many kinds keep all of them.
FEW = 12


def rest():
    with open(f"{WORK}/openapi/generated/api.github.com.json") as file:
        whole = json.load(file)

    def resolved(node):
        while "$ref" in node:
            found = whole
            for part in node["$ref"].lstrip("#/").split("/"):
                found = found[part]
            node = found
        return node

    def shape(node, names, depth=0):
        node = resolved(node)
        types, properties, items = set(), {}, None
        if "type" in node:
            types.add(node["type"])
        if node.get("nullable"):
            types.add("null")
        for name, inner in node.get("properties", {}).items():
            if (names is None or name in names) and depth < DEPTH:
                properties[name] = shape(inner, names, depth + 1)
        if "items" in node:
            items = shape(node["items"], names, depth)
        for key in ("allOf", "oneOf", "anyOf"):
            for inner in node.get(key, []):
                more = shape(inner, names, depth)
                types |= set(more.get("types", []))
                for name, known in more.get("properties", {}).items():
                    before = properties.get(name)
                    properties[name] = known if before is None else merged(before, known)
                items = items or more.get("items")
        found = {"types": sorted(types)}
        if properties:
            found["properties"] = properties
        if items:
            found["items"] = items
        return found

    def merged(one, two):
        found = {"types": sorted(set(one["types"]) | set(two["types"]))}
        names = {**one.get("properties", {}), **two.get("properties", {})}
        if names:
            found["properties"] = names
        items = one.get("items") or two.get("items")
        if items:
            found["items"] = items
        return found

    def body(node, names):
        content = resolved(node).get("content", {}).get("application/json")
        return shape(content["schema"], names) if content else None

    operations = {}
    for operation in OPERATIONS:
        method, path = operation.split(" ")
        said = whole["paths"][path][method.lower()]
        parameters = [resolved(p) for p in said.get("parameters", [])]
        known = {
            "query": sorted(p["name"] for p in parameters if p["in"] == "query"),
            "answers": {code: body(answer, READ) for code, answer in said["responses"].items() if code[0] == "2"},
        }
        if "requestBody" in said:
            known["body"] = body(said["requestBody"], None)
            for inner in known["body"].get("properties", {}).values():
                inner.pop("properties", None)
        operations[operation] = known
    return operations


def graphql():
    words = set()
    for path in glob.glob(DOCUMENTS):
        with open(path) as file:
            words |= set(re.findall(r"\w+", file.read()))
    with open(f"{WORK}/graphql-schema/schema.json") as file:
        whole = json.load(file)
    whole = whole.get("data", whole)["__schema"]["types"]
    whole = {one["name"]: one for one in whole}

    def written(kind):
        if kind["kind"] == "NON_NULL":
            return written(kind["ofType"]) + "!"
        if kind["kind"] == "LIST":
            return "[" + written(kind["ofType"]) + "]"
        return kind["name"]

    types, todo = {}, ["Query", "Mutation"]
    while todo:
        name = todo.pop()
        one = whole[name]
        if name in types or one["kind"] in ("SCALAR", "ENUM"):
            continue
        fields = {}
        for field in (one.get("fields") or []) + (one.get("inputFields") or []):
            if field["name"] not in words:
                continue
            args = {a["name"]: written(a["type"]) for a in field.get("args", []) if a["name"] in words or written(a["type"])[-1] == "!"}
            fields[field["name"]] = {"type": written(field["type"]), **({"args": args} if args else {})}
            reached = [field] + field.get("args", [])
            todo += [re.sub(r"\W", "", written(r["type"])) for r in reached if r is field or r["name"] in words]
        # Whoever is a node of any kind is nearly everything.
        all_kinds = [p["name"] for p in one.get("possibleTypes") or []]
        possible = sorted(p for p in all_kinds if p in words or len(all_kinds) <= FEW)
        types[name] = {"kind": one["kind"], "fields": fields, **({"possible": possible} if possible else {})}
        todo += [p for p in possible if p in words]
    return types


def webhooks():
    with open(f"{WORK}/webhooks-examples/api.github.com/index.json") as file:
        examples = json.load(file)
    wanted = {"issues", "issue_comment", "pull_request", "pull_request_review", "push", "status", "check_run"}
    found = {}
    for event in examples:
        if event["name"] in wanted:
            said = event["examples"][0]
            keep = {"sender": {"login": said["sender"]["login"]}}
            if isinstance(said.get("state"), str):
                keep["state"] = said["state"]
            found[event["name"]] = keep
    return found


os.makedirs(OUT, exist_ok=True)
for name, made in (("rest", rest()), ("graphql", graphql()), ("webhooks", webhooks())):
    with open(f"{OUT}/{name}.json", "w") as file:
        json.dump(made, file, indent=1, sort_keys=True)
        file.write("\n")
