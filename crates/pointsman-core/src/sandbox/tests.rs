//! What is shown, and what never is.

use std::path::{Path, PathBuf};

use super::{
    Access, Beneath, CheckoutPaths, Credential, Enclosed, Limits, MachineFacts, Outside, Place, Plan,
    ProgramDir, ProgramLink, Right, SessionPaths, SystemEntry, decide, holds_credentials, installation_of,
    plan, shows_etc, tool_roots,
};
use crate::config::{Config, MachineSandbox, SandboxMode, SandboxSettings, Worktree};

const HOME: &str = "/home/ann";

fn machine() -> MachineFacts {
    let entry = |path: &str| SystemEntry { path: path.into(), link: None };
    MachineFacts {
        home: Some(HOME.into()),
        real_home: None,
        system: vec![
            entry("/usr"),
            SystemEntry { path: "/bin".into(), link: Some("usr/bin".into()) },
            entry("/etc/passwd"),
        ],
        path: vec![
            ProgramDir { path: "/usr/bin".into(), targets: Vec::new() },
            ProgramDir { path: "/bin".into(), targets: Vec::new() },
            ProgramDir {
                path: "/home/ann/.local/bin".into(),
                targets: vec![
                    "/home/ann/.local/share/claude/versions".into(),
                    "/home/ann/.local/share/pipx/venvs/ruff".into(),
                    "/home/ann/.ssh".into(),
                    "/home/ann".into(),
                ],
            },
            ProgramDir { path: "/home/ann".into(), targets: Vec::new() },
            ProgramDir { path: "/home".into(), targets: Vec::new() },
        ],
        roots: vec!["/home/ann/.rustup".into()],
        links: vec![ProgramLink {
            path: "/home/ann/.local/share/pnpm/pnpm".into(),
            target: "global/pnpm".into(),
        }],
        credentials: vec![
            Credential { path: "/home/ann/.rustup/credentials".into(), is_dir: false },
            Credential { path: "/home/ann/elsewhere/.npmrc".into(), is_dir: false },
        ],
        operator: MachineSandbox::default(),
        ours: Vec::new(),
    }
}

fn session() -> Enclosed {
    let root = Path::new("/home/ann/.local/state/pointsman/projects/shop/sessions/dev-shop-3");
    Enclosed::Session(Box::new(SessionPaths {
        tree: root.join("tree"),
        gateway: Some(root.join("gateway.git")),
        messages: root.join("inbox-1"),
        run: root.join("run-1"),
        phase_dir: "/tmp".into(),
        phases: root.join("phases-1"),
        socket: ("/run/user/1000/pointsman/s/1".into(), "/run/pointsman".into()),
        objects: "/home/ann/.local/state/pointsman/projects/shop/mirror.git/objects".into(),
        spec: root.join("launch-1.json"),
        program: "/usr/bin/pointsman".into(),
        settings: Some(root.join("agent-1")),
        network: Some(("/run/user/1000/pointsman/proxy/1/shown".into(), "/run/pointsman-proxy".into())),
    }))
}

fn shown(plan: &Plan) -> Vec<(String, &'static str)> {
    plan.mounts.iter().map(|m| (m.path.to_string_lossy().into_owned(), m.access.as_str())).collect()
}

#[test]
fn a_session_sees_its_own_things_programs_and_the_system() {
    let plan = plan(
        &machine(),
        &session(),
        &["/srv/agent.sh".into(), "/bin/sh".into(), HOME.into()],
        Limits::default(),
    );
    let root = "/home/ann/.local/state/pointsman/projects/shop";
    let below = |path: &str| format!("{root}/{path}");
    let expected = vec![
        ("/bin".to_owned(), "link"),
        ("/etc/passwd".to_owned(), "read"),
        ("/home/ann".to_owned(), "empty"),
        ("/home/ann/.local/bin".to_owned(), "read"),
        ("/home/ann/.local/share/claude/versions".to_owned(), "read"),
        ("/home/ann/.local/share/pipx/venvs/ruff".to_owned(), "read"),
        ("/home/ann/.local/share/pnpm/pnpm".to_owned(), "link"),
        (below("mirror.git/objects"), "read"),
        (below("sessions/dev-shop-3/agent-1"), "write"),
        (below("sessions/dev-shop-3/gateway.git"), "write"),
        (below("sessions/dev-shop-3/inbox-1"), "read"),
        (below("sessions/dev-shop-3/launch-1.json"), "read"),
        (below("sessions/dev-shop-3/run-1"), "write"),
        (below("sessions/dev-shop-3/tree"), "write"),
        ("/home/ann/.rustup".to_owned(), "read"),
        ("/home/ann/.rustup/credentials".to_owned(), "hidden"),
        ("/run".to_owned(), "empty"),
        ("/run/pointsman".to_owned(), "read"),
        ("/run/pointsman-proxy".to_owned(), "read"),
        ("/srv/agent.sh".to_owned(), "read"),
        ("/tmp".to_owned(), "write"),
        ("/usr".to_owned(), "read"),
        ("/var/tmp".to_owned(), "empty"),
    ];
    assert_eq!(shown(&plan), expected);
    let phases = plan.mounts.iter().find(|m| m.path == Path::new("/tmp")).unwrap();
    assert!(phases.source.as_ref().unwrap().ends_with("phases-1"));
}

#[test]
fn a_checkout_sees_no_socket_and_nothing_of_a_session() {
    let root = Path::new("/home/ann/.local/state/pointsman/projects/shop");
    let checkout = Enclosed::Checkout(CheckoutPaths {
        checkout: root.join("checkouts/ci-1"),
        objects: root.join("mirror.git/objects"),
        origin: Some(root.join("mirror.git")),
        result: None,
        program: "/usr/bin/pointsman".into(),
        network: None,
    });
    let plan = plan(&machine(), &checkout, &[], Limits::default());
    let own: Vec<&Path> =
        plan.mounts.iter().map(|m| m.path.as_path()).filter(|path| path.starts_with(root)).collect();
    assert_eq!(own, [root.join("checkouts/ci-1"), root.join("mirror.git")]);
    assert!(!plan.mounts.iter().any(|m| m.path.starts_with("/run/pointsman")));
}

#[test]
fn parents_come_before_what_is_mounted_on_them() {
    let plan = plan(&machine(), &session(), &[], Limits::default());
    for (at, mount) in plan.mounts.iter().enumerate() {
        assert!(
            !plan.mounts[at..].iter().skip(1).any(|later| mount.path.starts_with(&later.path)),
            "{mount:?}"
        );
    }
}

#[test]
fn no_plan_writes_to_the_system_or_shows_a_place_of_credentials() {
    let mut facts = machine();
    for secret in [".ssh", ".aws", ".gnupg", ".config", ".netrc"] {
        facts.roots.push(Path::new(HOME).join(secret));
        facts.path.push(ProgramDir { path: Path::new(HOME).join(secret).join("bin"), targets: Vec::new() });
    }
    let plan = plan(&facts, &session(), &[Path::new(HOME).join(".git-credentials")], Limits::default());
    for mount in &plan.mounts {
        let below = mount.path.strip_prefix(HOME).ok().and_then(|rest| rest.components().next());
        let name = below.map(|name| name.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
        assert!(mount.access == Access::Hidden || !holds_credentials(&name), "{mount:?}");
        if mount.access == Access::Write {
            assert!(mount.path.starts_with("/home/ann/.local/state") || mount.path == Path::new("/tmp"));
        }
    }
}

#[test]
fn the_second_wall_gives_no_right_that_no_mount_shows() {
    let plan = plan(&machine(), &session(), &[], Limits::default());
    let rights = plan.rights();
    let of =
        |path: &str| rights.iter().find(|beneath| beneath.path == Path::new(path)).map(|found| found.right);
    assert_eq!(of("/"), Some(Right::List));
    assert_eq!(of("/proc"), Some(Right::Change));
    assert_eq!(of("/usr"), Some(Right::Read));
    assert_eq!(of("/tmp"), Some(Right::Write));
    assert_eq!(of("/home/ann"), Some(Right::Write));
    assert_eq!(of("/bin"), None, "the link leads to /usr");
    assert_eq!(of("/home/ann/.rustup/credentials"), None);
    for Beneath { path, right } in &rights {
        let mount = plan.mounts.iter().find(|mount| mount.path == *path);
        let allowed = match mount.map(|mount| &mount.access) {
            Some(Access::Read) => *right == Right::Read,
            Some(Access::Write | Access::Empty) => *right == Right::Write,
            Some(Access::Link(_) | Access::Hidden | Access::Covered) => false,
            None => ["/", "/proc", "/dev"].contains(&path.to_str().unwrap()),
        };
        assert!(allowed, "{path:?} {right:?}");
    }
}

#[test]
fn a_home_behind_a_link_is_not_shown_by_its_real_name() {
    let facts = MachineFacts { real_home: Some("/data/ann".into()), ..machine() };
    for path in ["/data", "/data/ann", "/data/ann/.ssh", "/home/ann", "relative", "/"] {
        assert!(!facts.may_show(Path::new(path)), "{path}");
    }
    assert!(facts.may_show(Path::new("/data/ann/.local/share/tool")));
}

#[test]
fn the_operator_of_the_machine_adds_paths() {
    let operator = MachineSandbox {
        read: vec!["/srv/tools".into()],
        write: vec!["/srv/cache".into()],
        private_hosts: Vec::new(),
    };
    let plan = plan(&MachineFacts { operator, ..machine() }, &session(), &[], Limits::default());
    let shown = shown(&plan);
    assert!(shown.contains(&("/srv/tools".to_owned(), "read")), "{shown:?}");
    assert!(shown.contains(&("/srv/cache".to_owned(), "write")), "{shown:?}");
}

#[test]
fn a_home_at_the_root_is_left_alone() {
    let facts = MachineFacts { home: Some("/".into()), ..machine() };
    let plan = plan(&facts, &session(), &[], Limits::default());
    assert!(!plan.mounts.iter().any(|mount| mount.path == Path::new("/")));
}

#[test]
fn an_installation_is_what_a_program_needs_beside_itself() {
    for (file, places) in [
        (
            "/h/.nvm/versions/node/v22/lib/node_modules/@x/cli/cli.js",
            &["/h/.nvm/versions/node/v22/lib/node_modules"][..],
        ),
        ("/h/.local/share/pipx/venvs/ruff/bin/ruff", &["/h/.local/share/pipx/venvs/ruff"]),
        ("/h/.local/share/claude/versions/2.1", &["/h/.local/share/claude/versions"]),
        ("/opt/tool/bin/tool", &["/opt/tool"]),
        // Directories of many programs also hold logins, keys and other people's work.
        ("/h/.cargo/bin/cargo", &["/h/.cargo/bin", "/h/.cargo/lib", "/h/.cargo/lib64", "/h/.cargo/libexec"]),
        ("/h/.local/tool", &["/h/.local/tool"]),
        ("/h/.local/share/tool", &["/h/.local/share/tool"]),
        ("/h/projects/tool.py", &["/h/projects/tool.py"]),
        ("/h/tool", &["/h/tool"]),
        ("/tool", &["/tool"]),
    ] {
        let places: Vec<PathBuf> = places.iter().map(PathBuf::from).collect();
        assert_eq!(installation_of(Path::new(file), &[Path::new("/h")]), places, "{file}");
    }
}

#[test]
fn our_own_directories_are_covered_wherever_they_lie() {
    let state = Path::new("/usr/local/pointsman");
    let cases = [
        // Below a directory that is shown, and below one that the operator shows.
        (vec![PathBuf::from("/usr/local/pointsman")], Vec::new(), true),
        (vec!["/srv/pointsman".into()], vec![PathBuf::from("/srv")], true),
        // Nothing shows it.
        (vec!["/srv/pointsman".into()], Vec::new(), false),
        (vec!["/home/ann/.local/state/pointsman".into()], Vec::new(), false),
    ];
    for (ours, read, covered) in cases {
        let operator = MachineSandbox { read, ..MachineSandbox::default() };
        let facts = MachineFacts { ours: ours.clone(), operator, ..machine() };
        let plan = plan(&facts, &session(), &[], Limits::default());
        let found = plan.mounts.iter().find(|mount| mount.path == ours[0]);
        assert_eq!(found.map(|mount| mount.access == Access::Covered), covered.then_some(true), "{ours:?}");
    }
    // What belongs to the session itself is shown on top of it.
    let Enclosed::Session(mut paths) = session() else { unreachable!() };
    paths.tree = state.join("tree");
    let facts = MachineFacts { ours: vec![state.to_owned()], ..machine() };
    let plan = plan(&facts, &Enclosed::Session(paths), &[], Limits::default());
    let at = |path: &Path| plan.mounts.iter().position(|mount| mount.path == path).unwrap();
    assert!(at(state) < at(&state.join("tree")));
    assert_eq!(plan.mounts[at(&state.join("tree"))].access, Access::Write);
}

#[test]
fn toolchains_are_found_where_variables_or_habit_put_them() {
    let none = tool_roots(Some(Path::new(HOME)), |_| None);
    assert!(none.contains(&"/home/ann/.rustup".into()) && none.contains(&"/home/ann/.cargo/bin".into()));
    assert!(!none.contains(&"/home/ann/.cargo".into()), "credentials.toml is there");
    let moved = |name: &str| (name == "RUSTUP_HOME").then(|| PathBuf::from("/srv/rustup"));
    let roots = tool_roots(None, moved);
    assert_eq!(roots, [PathBuf::from("/srv/rustup")]);
    assert!(shows_etc(["java-17-openjdk", "shadow"].into_iter()).contains(&"java-17-openjdk".to_owned()));
    assert!(!shows_etc(["shadow"].into_iter()).iter().any(|name| name == "shadow"));
}

#[test]
fn where_something_runs() {
    let missing = Outside::Missing;
    let settings = |mode| SandboxSettings { mode, ..Config::default().sandbox };
    let inside = |mode, worktree, works| decide(&settings(mode), worktree, works);
    let (private, linked) = (Worktree::Private, Worktree::Linked);
    assert_eq!(inside(SandboxMode::Auto, private, Ok(())), Place::Inside);
    assert_eq!(inside(SandboxMode::Require, private, Ok(())), Place::Inside);
    assert_eq!(inside(SandboxMode::Off, private, Ok(())), Place::Outside(Outside::Off));
    assert_eq!(inside(SandboxMode::Auto, private, Err(&missing)), Place::Outside(Outside::Missing));
    assert_eq!(inside(SandboxMode::Require, private, Err(&missing)), Place::Nowhere(Outside::Missing));
    assert_eq!(inside(SandboxMode::Auto, linked, Ok(())), Place::Outside(Outside::Linked));
    assert_eq!(inside(SandboxMode::Require, linked, Ok(())), Place::Nowhere(Outside::Linked));
    // A probe that could not be made says nothing about the machine, so nothing runs outside because of it.
    let unclear = Outside::Unclear { why: "it took too long".to_owned() };
    for mode in [SandboxMode::Auto, SandboxMode::Require] {
        assert_eq!(inside(mode, private, Err(&unclear)), Place::Nowhere(unclear.clone()));
    }
    assert_eq!(inside(SandboxMode::Off, private, Err(&unclear)), Place::Outside(Outside::Off));
    for (mode, place) in [
        (SandboxMode::Auto, Place::Outside(Outside::Containers)),
        (SandboxMode::Require, Place::Nowhere(Outside::Containers)),
        (SandboxMode::Off, Place::Outside(Outside::Off)),
    ] {
        let settings = SandboxSettings { containers: true, ..settings(mode) };
        assert_eq!(decide(&settings, private, Ok(())), place);
    }
}

#[test]
fn a_role_narrows_or_widens_what_holds_for_all() {
    let text = "name = \"a\"\n[sandbox]\nmode = \"require\"\nmemory = \"2GB\"\n[roles.action.sandbox]\nmode = \"off\"\n\
                processes = 0\n";
    let config = Config::parse(text, "pointsman.toml").unwrap();
    let action = config.sandbox(crate::role::Role::Action);
    assert_eq!((action.mode, action.processes), (SandboxMode::Off, 0));
    assert_eq!(action.memory.map(|size| size.bytes), Some(2 << 30));
    assert_eq!(Limits::of(&action).processes, None);
    assert_eq!(config.sandbox(crate::role::Role::Dev).mode, SandboxMode::Require);
    let text = "name = \"a\"\n[roles.action.sandbox]\ncontainers = true\n";
    let config = Config::parse(text, "pointsman.toml").unwrap();
    assert!(config.sandbox(crate::role::Role::Action).containers);
    assert!(!config.sandbox(crate::role::Role::Dev).containers && !config.sandbox.containers);
    assert!(Config::parse("name = \"a\"\n[sandbox]\ncontainers = true\n", "pointsman.toml").is_err());
}
