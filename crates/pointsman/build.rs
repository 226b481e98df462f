//! Links the program to a fixed address: a hook runs at every step of an agent, and would spend a good part of its time on
//! moving the program's tables.

#[allow(clippy::disallowed_methods, reason = "cargo tells a build script about the target this way")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
