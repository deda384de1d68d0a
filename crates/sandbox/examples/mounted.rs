//! Runs a command in a directory as a policy shows it, without the rest of a
//! sandbox: `mounted SOURCE PRESET|POLICY.toml alone|shared COMMAND…`. For
//! measurements and trials; it needs root.

use std::path::Path;
use std::process::Command;

use sessile_sandbox::fuse::Caching;
use sessile_sandbox::{Draft, Rules};

#[path = "../tests/all/mounted.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod mounted;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, policy, caching, command, options @ ..] = arguments.as_slice() else {
        eprintln!("mounted SOURCE PRESET|POLICY.toml alone|shared COMMAND…");
        std::process::exit(2);
    };
    let draft = match std::fs::read_to_string(policy) {
        Ok(text) => Draft::from_toml(policy, &text).expect("a policy"),
        Err(_) => Draft::of_preset(policy),
    };
    let rules = Rules::new(&draft.resolve().expect("a policy"));
    let caching = if caching == "shared" { Caching::SHARED } else { Caching::ALONE };
    let place = std::env::temp_dir().join(format!("mounted-{}", std::process::id()));
    std::fs::create_dir(&place).expect("a directory to mount on");
    mounted::part_mounts();
    let shown = mounted::Mounted::new(Path::new(source), &place, rules, caching);
    let status = Command::new(command).args(options).current_dir(&place).status();
    drop(shown);
    let _ = std::fs::remove_dir(&place);
    std::process::exit(status.expect("a command").code().unwrap_or(1));
}
