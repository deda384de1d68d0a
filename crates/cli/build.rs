//! Linked at a fixed address: a keeper is a copy of this program, and what the
//! server in it has to relocate would be private memory of every keeper
//! (ARCHITECTURE.md, "What a keeper costs").

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-no-pie");
}
