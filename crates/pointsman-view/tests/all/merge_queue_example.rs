//! The views of the merge queue.

use super::*;

pub(super) fn merge_queue(all: &mut BTreeMap<&'static str, Vec<Value>>) {
    use pointsman_view::queue::*;
    let entry = Entry {
        position: Some(1),
        entry: EntryId(4),
        project: shop(),
        branch: text("fix-login"),
        pr_number: Some(7),
        issue: Some(3),
        identity_name: None,
        worktree_path: None,
        bead_id: None,
        node_id: None,
        priority: 0,
        attempts: 1,
        status: Status::Conflict,
        head_sha: sha(),
        base_sha: Some(sha()),
        candidate_sha: None,
        conflict_files: vec![text("a.txt")],
        conflicts_with: None,
        requested_at: at(),
        tested_since: None,
        landed_at: None,
        reason: None,
        log_path: None,
    };
    all.insert("merge-queue list", shown([entry.clone()]));
    let overview = Overview {
        length: 1,
        current: Some(entry.clone()),
        landed: 2,
        last_landed_at: Some(at()),
        paused: false,
        paused_reason: None,
        frozen_by_audit: false,
        direct_merges_total: 0,
        person_merges_total: 0,
        main_sha: Some(sha()),
        gate_seconds: Some(1.5),
        entries: vec![entry.clone()],
    };
    all.insert("merge-queue status", shown([overview]));
    let added = Added { entry: EntryId(4), branch: text("fix-login"), head_sha: sha() };
    all.insert("merge-queue add", [shown([entry.clone()]), shown([added])].concat());
    let entry = Entry { log_path: Some("/logs/4.log".into()), status: Status::Red, ..entry };
    let (verdict, log) = (Some(text("red")), Some(text("1 test failed")));
    all.insert("merge-queue show", shown([Shown { entry, tested_at: Some(at()), verdict, log }]));
    let retested = |entry| Retested { forgotten: 2, entry };
    all.insert("merge-queue retest", shown([retested(None), retested(Some(EntryId(5)))]));
    all.insert("sync", shown([Synced { head: sha(), commits: 2 }]));
    let tried = Tried {
        branch: text("fix-login"),
        head_sha: sha(),
        base_sha: sha(),
        candidate_sha: Some(sha()),
        verdict: Some(TrialVerdict::Red),
        conflict_files: vec![text("a.txt")],
        reason: Some(text("exit code 1")),
        log_path: Some("/trials/4.log".into()),
        log: Some(text("1 test failed")),
        checkout: None,
    };
    all.insert("merge-queue try", shown([tried]));
    let removed = Removed { entry: EntryId(4), branch: text("fix-login"), status: Status::Removed };
    all.insert("merge-queue remove", shown([removed]));
    let paused = Paused { paused: true, was_paused: None };
    let resumed = Paused { paused: false, was_paused: Some(true) };
    all.insert("merge-queue pause", shown([paused, resumed]));
    let database = backup::Database { name: text("pointsman.db"), bytes: 4096 };
    let copied = backup::Backup {
        path: "/state/backups/daily-2026-03-23.backup".into(),
        made_at: Some(at()),
        bytes: 8192,
        daily: true,
        databases: vec![database],
        problem: None,
    };
    all.insert("backup", shown([copied.clone()]));
    all.insert("backup list", shown([copied]));
    let restored = backup::RestoredDatabase {
        name: text("pointsman.db"),
        kept: Some("/state/pointsman.db.before-restore-1774224000".into()),
    };
    all.insert(
        "restore",
        shown([backup::Restored {
            path: "/state/backups/daily-2026-03-23.backup".into(),
            made_at: at(),
            databases: vec![restored.clone(), backup::RestoredDatabase { kept: None, ..restored }],
        }]),
    );
    let kept = rescue::Rescue {
        refname: text("refs/pointsman/rescue/dev-shop-3.1/1"),
        kind: text("rescue"),
        task: Some(3),
        session: Some(text("dev-shop-3.1")),
        at: at(),
        commit: sha(),
        files: vec![text("a.txt")],
        stat: None,
        patch: None,
        to: None,
        command: None,
    };
    let stat = Some(text("a.txt | 1 +"));
    let seen = rescue::Rescue { stat: stat.clone(), ..kept.clone() };
    let patch = rescue::Rescue { stat, patch: Some(text("+1")), ..kept.clone() };
    let to = rescue::Rescue { to: Some(PathBuf::from("there")), ..kept.clone() };
    let command = rescue::Rescue { command: Some(vec![text("git"), text("fetch")]), ..kept.clone() };
    all.insert("rescue list", shown([kept]));
    all.insert("rescue show", shown([seen, patch]));
    all.insert("rescue restore REF --to", shown([to]));
    all.insert("rescue restore REF --branch", shown([command]));
}
