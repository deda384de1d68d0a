//! How the program is linked. A keeper is a copy of it, so what its start costs is paid for
//! each session (ARCHITECTURE.md, "What a keeper costs").

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // At a fixed address: what the server in it has to relocate would be private memory of
    // every keeper.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    link_unwinder();
}

/// Includes the unwinder, if the C compiler has it as an archive. Otherwise the program
/// loads `libgcc_s.so` each time that it starts.
fn link_unwinder() {
    let variable = |name| std::env::var(name).unwrap_or_default();
    // The archive must be one for the same machine.
    if variable("TARGET") != variable("HOST") || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    let Ok(answer) = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    let path = String::from_utf8_lossy(&answer.stdout);
    // An archive that it does not have is answered with its bare name.
    if let Some(directory) = Path::new(path.trim()).parent().filter(|path| path.is_absolute()) {
        println!("cargo:rustc-link-search=native={}", directory.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
