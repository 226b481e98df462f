//! Containers that an action started go with its session; nobody else's do.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::shop;

/// Knows `run`, `ps` and `rm`, and refuses what the real one refuses. A container is a file that holds its label.
const DOCKER: &str = r#"#!/bin/bash
state="$(dirname "$0")/containers"
refuse() { echo "$1" >&2; exit "${2:-1}"; }
verb="$1"; shift
case "$verb" in
run)
    label=
    while [ $# -gt 1 ]; do
        case "$1" in
        --detach) ;;
        --label) shift; label="$1" ;;
        *) refuse "unknown flag: $1" 125 ;;
        esac
        shift
    done
    [ $# = 1 ] || refuse "'docker run' requires at least 1 argument" 125
    id="$(printf '%s %s' "$1" "$label" | sha256sum | cut -c1-64)"
    printf '%s' "$label" > "$state/$id"
    echo "$id" ;;
ps)
    wanted=
    while [ $# -gt 0 ]; do
        case "$1" in
        --all|--quiet|--no-trunc) ;;
        --filter) shift; wanted="${1#label=}"; [ "$wanted" != "$1" ] || refuse "invalid filter '$1'" ;;
        *) refuse "unknown flag: $1" 125 ;;
        esac
        shift
    done
    for file in "$state"/*; do
        [ -e "$file" ] && [ "$(cat "$file")" = "$wanted" ] && basename "$file"
    done
    exit 0 ;;
rm)
    [ "$1" = --force ] || refuse "cannot remove container: container is running"
    shift
    [ $# -gt 0 ] || refuse "'docker rm' requires at least 1 argument"
    for id in "$@"; do
        [ -e "$state/$id" ] || refuse "Error response from daemon: No such container: $id"
        rm "$state/$id"
    done ;;
*) refuse "docker: unknown command: docker $verb" ;;
esac
"#;

/// Starts a container and dies; its successor looks what is left, starts another, and gives up.
const AGENT: &str = r#"#!/bin/bash
start() { docker run --detach --label "$POINTSMAN_CONTAINER_LABEL" "$1" > "$HOME/$1" || exit 1; }
if [ ! -e "$HOME/first" ]; then
    start first
    exit 1
fi
ls "$TOOLS/containers" > "$HOME/seen"
start second
cp "$POINTSMAN_INBOX/0000-task.md" "$HOME/prompt"
printf 'PHASE:failed\nReason: enough\n' > "$PHASE_FILE"
read -r line
"#;

#[test]
fn e2e_the_containers_of_an_action_go_with_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let tools = dir.path();
    let containers = tools.join("containers");
    fs::create_dir(&containers).unwrap();
    let agent = AGENT.replace("$TOOLS", &tools.to_string_lossy());
    for (name, text) in [("docker", DOCKER), ("agent", agent.as_str())] {
        fs::write(tools.join(name), text).unwrap();
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let stranger = "a".repeat(64);
    fs::write(containers.join(&stranger), "pointsman.session=/elsewhere/action-shop-1").unwrap();
    let daemon = shop()
        .outside("the containers and the notes of the agent lie outside")
        .set("roles.action.enabled", "true")
        .set("limits.min_free_memory_mb", "0")
        .set("roles.action.command", &format!("[{:?}]", tools.join("agent").to_string_lossy()))
        .daemon_env("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", tools.display()))
        .start();
    let order = ["forge", "issue", "create", "--title", "Try it", "--body", "", "--label", "action"];
    daemon.json(&order);
    // It is written after the second container was started.
    daemon.wait_for("both sessions", || daemon.path("home/prompt").exists().then_some(()));
    let left = || {
        let names = fs::read_dir(&containers).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    daemon.wait_for("its containers to go", || (left() == [stranger.clone()]).then_some(()));
    let read = |name: &str| fs::read_to_string(daemon.path("home").join(name)).unwrap();
    assert_eq!(read("seen").trim(), stranger, "what the first session started went before the second began");
    assert_eq!((read("first").trim().len(), read("second").trim().len()), (64, 64));
    assert!(read("prompt").contains("POINTSMAN_CONTAINER_LABEL"));
}
