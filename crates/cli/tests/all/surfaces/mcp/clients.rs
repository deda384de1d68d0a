//! The official clients, which `cargo xtask test` installs.

use super::server::Server;
use sessile_testkit::{Harness, harness, needs};
use std::path::{Path, PathBuf};
use std::process::Command;

fn python(h: &Harness, args: &[&str]) -> Option<Command> {
    let mut command = Command::new(needs::installed("SESSILE_TEST_MCP_PYTHON")?);
    command.arg(script("client.py")).args(args);
    surround(&mut command, h);
    Some(command)
}

fn node(h: &Harness, name: &str, args: &[&str]) -> Option<Command> {
    let modules = needs::installed("SESSILE_TEST_MCP_NODE")?;
    let mut command = Command::new("node");
    command.arg(script(name)).args(args).env("SESSILE_TEST_MCP_NODE", modules);
    surround(&mut command, h);
    Some(command)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/surfaces/mcp/clients").join(name)
}

/// The same directory, mark and sessions as everything else of the harness.
fn surround(command: &mut Command, h: &Harness) {
    let like = h.command(&[]);
    command.current_dir(h.root()).env("SESSILE", like.get_program());
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
}

/// A client says `ok` when all was as it should be.
#[track_caller]
fn agrees(mut command: Command) {
    let output = command.output().expect("the client starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.ends_with("ok\n"),
        "{command:?}: {}\n{said}\n{complained}",
        output.status
    );
}

#[test]
fn the_python_client_over_stdio() {
    for mode in ["auto", "legacy"] {
        let h = harness!();
        if let Some(client) = python(&h, &["stdio", mode]) {
            agrees(client);
        }
    }
}

#[test]
fn the_python_client_over_http() {
    for mode in ["auto", "legacy"] {
        let h = harness!();
        let server = Server::start(&h, &[]);
        if let Some(client) = python(&h, &["http", mode, &server.url(), &server.token]) {
            agrees(client);
        }
    }
}

#[test]
fn the_typescript_client_over_stdio() {
    for script in ["sdk.mjs", "client.mjs"] {
        let h = harness!();
        if let Some(client) = node(&h, script, &["stdio"]) {
            agrees(client);
        }
    }
}

#[test]
fn the_typescript_client_over_http() {
    for script in ["sdk.mjs", "client.mjs"] {
        let h = harness!();
        let server = Server::start(&h, &[]);
        if let Some(client) = node(&h, script, &["http", &server.url(), &server.token]) {
            agrees(client);
        }
    }
}

/// Scenarios of the conformance suite that need nothing but a server. The others
/// ask for fixtures, which `server::mcp::conformance` has; all are listed there.
const WITHOUT_FIXTURES: [&str; 5] = [
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

/// What the suite says, and whether it was content.
fn suite(h: &Harness, modules: &Path, args: &[&str]) -> (String, bool) {
    let program = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let mut command = Command::new("node");
    command.arg(modules.join(program)).args(args);
    surround(&mut command, h);
    let output = command.output().expect("the suite starts");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (said.concat(), output.status.success())
}

#[test]
fn the_conformance_suite_as_far_as_it_needs_no_fixtures() {
    let Some(modules) = needs::installed("SESSILE_TEST_MCP_NODE") else { return };
    let h = harness!();
    // It brings no token.
    let server = Server::start(&h, &["--auth", "none"]);
    for name in WITHOUT_FIXTURES {
        let args = ["server", "--url", &server.url(), "--scenario", name];
        let (said, is_content) = suite(&h, &modules, &args);
        assert!(is_content && said.contains(" 0 failed"), "{name}: {said}");
    }
}
