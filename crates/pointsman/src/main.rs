//! The `pointsman` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    pointsman::cli::main()
}
