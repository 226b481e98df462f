//! The day that everybody lives through: when issues are filed, how long things take, and how fast it all passes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use pointsman_testkit::fake_forgejo::{FakeForgejo, OWNER, Traffic};

use crate::wait;

const MINUTE: Duration = Duration::from_secs(60);

/// The whole of it.
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
/// When the first issue is filed: before it, nothing happens.
pub(super) const MORNING: Duration = Duration::from_secs(9 * 3600);
/// How long an agent works before it hands in.
pub(super) const CODING: Duration = MINUTE.saturating_mul(40);
/// How long it takes to do what a review asks for.
pub(super) const FIXING: Duration = MINUTE.saturating_mul(20);
/// How long CI takes.
const CI: Duration = MINUTE.saturating_mul(12);
/// What people do about each issue: when it is filed, and after how long which review comes.
const ISSUES: [(Duration, &[(Duration, &str)]); 2] = [
    (MORNING, &[(MINUTE.saturating_mul(150), "APPROVED")]),
    (
        Duration::from_secs(14 * 3600),
        &[(MINUTE.saturating_mul(90), "REQUEST_CHANGES"), (MINUTE.saturating_mul(90), "APPROVED")],
    ),
];
/// Between two looks at the server, of real time.
const LOOK: Duration = Duration::from_millis(20);

/// A day that passes so many times as fast.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    begun: Instant,
    factor: u32,
}

impl Clock {
    pub(super) fn start(factor: u32) -> Self {
        Self { begun: Instant::now(), factor }
    }

    /// What this much of the day takes.
    pub(super) fn real(self, span: Duration) -> Duration {
        span / self.factor
    }

    /// How late it is.
    pub(super) fn now(self) -> Duration {
        self.begun.elapsed() * self.factor
    }

    pub(super) fn wait_until(self, at: Duration) -> anyhow::Result<()> {
        wait::pause(self.real(at.saturating_sub(self.now())))
    }
}

/// What the server was asked at certain times of the day.
pub(super) struct Lived {
    pub(super) night: Traffic,
    /// From the first issue to the end of the last one, for each.
    pub(super) tasks: Vec<Traffic>,
    pub(super) day: Traffic,
    /// What was asked how often.
    pub(super) asked: BTreeMap<String, u64>,
}

/// Lives through the day as its people and its CI. What is measured does the rest.
pub(super) fn live(fake: &FakeForgejo, clock: Clock) -> anyhow::Result<Lived> {
    let (mut seen, begin, skipped) = (Vec::new(), fake.traffic(), fake.requests().len());
    clock.wait_until(MORNING)?;
    let night = less(fake.traffic(), begin);
    let mut tasks = Vec::new();
    for (at, reviews) in ISSUES {
        clock.wait_until(at)?;
        let before = fake.traffic();
        let issue = fake.create_issue(OWNER, "Add something", "Add a file.", &["backlog"]);
        look_after(fake, clock, issue, reviews, &mut seen)
            .with_context(|| format!("issue {issue}, at {:.2} h", clock.now().as_secs_f64() / 3600.0))?;
        tasks.push(less(fake.traffic(), before));
    }
    clock.wait_until(DAY)?;
    Ok(Lived { night, tasks, day: less(fake.traffic(), begin), asked: asked(&fake.requests()[skipped..]) })
}

/// Calls of the API by their kind: the names and numbers of things are left out.
fn asked(requests: &[(String, String)]) -> BTreeMap<String, u64> {
    let mut asked = BTreeMap::new();
    for (method, path) in requests {
        let Some(path) = path.strip_prefix("/api/v1/") else { continue };
        let word = |part: &str| part.chars().all(|c| c.is_ascii_lowercase());
        let parts: Vec<&str> =
            path.split('/').skip(3).map(|part| if word(part) { part } else { "*" }).collect();
        *asked.entry(format!("{method} {}", parts.join("/"))).or_default() += 1;
    }
    asked
}

/// A commit that CI knows, and when it will be done with it.
type Seen = Vec<(String, Duration, bool)>;

/// Until the issue is closed: CI looks at every commit of every branch, people review what is green.
fn look_after(
    fake: &FakeForgejo,
    clock: Clock,
    issue: u64,
    reviews: &[(Duration, &str)],
    seen: &mut Seen,
) -> anyhow::Result<()> {
    let mut reviews = reviews.iter();
    let mut due: Option<(u64, String, Duration, &str)> = None;
    let mut reviewed = Vec::new();
    wait::until("the issue to be closed", clock.real(DAY), || {
        run_ci(fake, clock, seen);
        for pr in fake.pulls() {
            let pull = fake.pull(pr);
            let green = seen.iter().any(|(sha, _, done)| *done && *sha == pull.head_sha);
            if pull.open && green && due.is_none() && !reviewed.contains(&pull.head_sha) {
                let Some((after, word)) = reviews.next() else { continue };
                due = Some((pr, pull.head_sha, clock.now() + *after, word));
            }
        }
        if let Some((pr, sha, at, word)) = due.take() {
            if clock.now() < at {
                due = Some((pr, sha, at, word));
            } else {
                fake.review(pr, OWNER, word, "as I see it", &[]);
                reviewed.push(sha);
            }
        }
        std::thread::park_timeout(LOOK);
        Ok((!fake.issue(issue).open).then_some(()))
    })
}

fn run_ci(fake: &FakeForgejo, clock: Clock, seen: &mut Seen) {
    for sha in fake.heads() {
        if !seen.iter().any(|(known, ..)| *known == sha) {
            // What was on main before anything happened needs none.
            if fake.branch("main").as_ref() != Some(&sha) {
                fake.set_status(&sha, "ci/build", "pending");
            }
            seen.push((sha, clock.now() + CI, false));
        }
    }
    for (sha, at, done) in seen.iter_mut().filter(|(_, at, done)| !done && *at <= clock.now()) {
        let _ = at;
        fake.set_status(sha, "ci/build", "success");
        *done = true;
    }
}

pub(super) fn less(later: Traffic, earlier: Traffic) -> Traffic {
    Traffic {
        calls: later.calls - earlier.calls,
        sent: later.sent - earlier.sent,
        received: later.received - earlier.received,
    }
}
