//! What a landing costs beside its gate, by the number of files, beside the plain way.

use serde_json::json;

use super::line;
use crate::report::{Report, Target};
use crate::stage::Workspace;

/// Branches per line; the first landing is not counted.
const BRANCHES: usize = 6;
/// Numbers of files, and what is to be reached (issue 16).
const SIZES: [(usize, Option<f64>); 3] = [(200, None), (20_000, Some(0.15)), (200_000, Some(1.0))];

/// Works a line of branches through in projects of several sizes.
pub(crate) fn measure(place: &Workspace, gate_seconds: u64, most: usize) -> anyhow::Result<Report> {
    let (mut rows, mut results, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    for (files, limit) in SIZES.into_iter().filter(|(files, _)| *files <= most) {
        let plain = line::plain_beside_gate(place, files, BRANCHES, gate_seconds)?;
        let queue = line::queue_beside_gate(place, files, BRANCHES, gate_seconds)?;
        rows.push(vec![files.to_string(), format!("{plain:.3}"), format!("{queue:.3}")]);
        results.push(json!({ "files": files, "plain_s": plain, "queue_s": queue }));
        targets.extend(limit.map(|limit| Target {
            what: format!("a landing beside its gate at {files} files:"),
            unit: "s",
            limit,
            found: queue,
        }));
    }
    Ok(Report {
        name: "trees",
        title: format!(
            "Seconds per landing beside a gate of {gate_seconds} s, one branch after another, gates in the sandbox."
        ),
        header: vec!["FILES", "PLAIN WAY, S", "MERGE QUEUE, S"],
        rows,
        targets,
        results,
    })
}
