//! Results as a table for people and a file for programs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::proc;

/// Everything one benchmark found.
pub(crate) struct Report {
    pub(crate) name: &'static str,
    /// What it is about, in one line.
    pub(crate) title: String,
    /// The table's first row.
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// What was to be reached.
    pub(crate) targets: Vec<Target>,
    /// Every number, for the file.
    pub(crate) results: Vec<Value>,
}

/// A number that is not to be exceeded.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) limit: f64,
    pub(crate) found: f64,
}

impl Target {
    pub(crate) fn is_met(&self) -> bool {
        self.found <= self.limit
    }

    fn verdict(&self) -> &'static str {
        if self.is_met() { "met" } else { "MISSED" }
    }
}

impl Report {
    /// To standard output, without colours: it is meant to be copied.
    pub(crate) fn print(&self) {
        println!("{}\n", self.title);
        let header: Vec<String> = self.header.iter().map(|&cell| cell.to_owned()).collect();
        print!("{}", aligned(&header, &self.rows));
        println!();
        for target in &self.targets {
            let Target { what, unit, limit, found } = target;
            println!("target {}: {what} {found:.2} {unit}, at most {limit} {unit}", target.verdict());
        }
    }

    /// To `<directory>/<name>.json`; answers the path.
    pub(crate) fn write(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        let targets: Vec<Value> = self
            .targets
            .iter()
            .map(|t| json!({ "what": t.what, "unit": t.unit, "limit": t.limit, "found": t.found, "met": t.is_met() }))
            .collect();
        let value = json!({
            "benchmark": self.name,
            "version": env!("CARGO_PKG_VERSION"),
            "machine": {
                "cores": std::thread::available_parallelism().map_or(0, usize::from),
                "memory_mb": proc::machine_memory() >> 20,
            },
            "targets": targets,
            "results": self.results,
        });
        let path = directory.join(format!("{}.json", self.name));
        std::fs::write(&path, format!("{value:#}\n"))?;
        Ok(path)
    }
}

/// The first column to the left, numbers to the right.
fn aligned(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
        cells.filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    std::iter::once(header).chain(rows.iter().map(Vec::as_slice)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn columns_line_up() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table =
            aligned(&row(["WHAT", "P50", "MAX"]), &[row(["ours", "9.5", "10"]), row(["x", "1", "2"])]);
        assert_eq!(table, "WHAT  P50  MAX\nours  9.5   10\nx       1    2\n");
    }
}
