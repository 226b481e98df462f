//! The formulas that come with the program, one for each agent.

/// Name and text of each, sorted by name.
pub const SHIPPED: [(&str, &str); 8] = [
    ("run-action", include_str!("shipped/run-action.toml")),
    ("run-dev", include_str!("shipped/run-dev.toml")),
    ("run-gardener", include_str!("shipped/run-gardener.toml")),
    ("run-planner", include_str!("shipped/run-planner.toml")),
    ("run-predictor", include_str!("shipped/run-predictor.toml")),
    ("run-review", include_str!("shipped/run-review.toml")),
    ("run-supervisor", include_str!("shipped/run-supervisor.toml")),
    ("run-vault", include_str!("shipped/run-vault.toml")),
];

/// The text of one of them.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
