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

/// A scenario of the conformance suite.
enum Scenario {
    Runs,
    /// It needs something that a server may have, and ours has not.
    DoesNotApply(&'static str),
}

const FIXTURE: &str = "calls a tool of its own by name; ours are tried by the clients above";
const NO_LOGGING: &str = "logging: what a run writes is in its answer, and progress tells of it";
const NO_ASKING: &str = "asks the client's model or user: commands ask through input";
const NO_RESOURCES: &str = "resources: files are read by commands";
const NO_PROMPTS: &str = "prompts: there are none to offer";
const NO_REPLAY: &str = "resumes a stream by event id: a client returns to a run by its number";

use Scenario::{DoesNotApply, Runs};

/// All of them, so that a new one is noticed.
const SCENARIOS: [(&str, Scenario); 32] = [
    ("server-initialize", Runs),
    ("logging-set-level", DoesNotApply(NO_LOGGING)),
    ("ping", Runs),
    ("completion-complete", DoesNotApply(NO_PROMPTS)),
    ("tools-list", Runs),
    ("tools-call-simple-text", DoesNotApply(FIXTURE)),
    ("tools-call-image", DoesNotApply(FIXTURE)),
    ("tools-call-audio", DoesNotApply(FIXTURE)),
    ("tools-call-embedded-resource", DoesNotApply(NO_RESOURCES)),
    ("tools-call-mixed-content", DoesNotApply(NO_RESOURCES)),
    ("tools-call-with-logging", DoesNotApply(NO_LOGGING)),
    ("tools-call-error", DoesNotApply(FIXTURE)),
    ("tools-call-with-progress", DoesNotApply(FIXTURE)),
    ("tools-call-sampling", DoesNotApply(NO_ASKING)),
    ("tools-call-elicitation", DoesNotApply(NO_ASKING)),
    ("json-schema-2020-12", DoesNotApply(FIXTURE)),
    ("elicitation-sep1034-defaults", DoesNotApply(NO_ASKING)),
    ("server-sse-polling", DoesNotApply(NO_REPLAY)),
    ("server-sse-multiple-streams", Runs),
    ("elicitation-sep1330-enums", DoesNotApply(NO_ASKING)),
    ("resources-list", DoesNotApply(NO_RESOURCES)),
    ("resources-read-text", DoesNotApply(NO_RESOURCES)),
    ("resources-read-binary", DoesNotApply(NO_RESOURCES)),
    ("resources-templates-read", DoesNotApply(NO_RESOURCES)),
    ("resources-subscribe", DoesNotApply(NO_RESOURCES)),
    ("resources-unsubscribe", DoesNotApply(NO_RESOURCES)),
    ("prompts-list", DoesNotApply(NO_PROMPTS)),
    ("prompts-get-simple", DoesNotApply(NO_PROMPTS)),
    ("prompts-get-with-args", DoesNotApply(NO_PROMPTS)),
    ("prompts-get-embedded-resource", DoesNotApply(NO_PROMPTS)),
    ("prompts-get-with-image", DoesNotApply(NO_PROMPTS)),
    ("dns-rebinding-protection", Runs),
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
fn the_conformance_suite() {
    let Some(modules) = needs::installed("SESSILE_TEST_MCP_NODE") else { return };
    let h = harness!();
    let (listed, _) = suite(&h, &modules, &["list"]);
    let servers = listed.split("Client scenarios").next().unwrap_or_default();
    let names: Vec<&str> =
        servers.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
    let known: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "each scenario is run, or has a reason not to be");
    // It brings no token.
    let server = Server::start(&h, &["--auth", "none"]);
    for (name, scenario) in &SCENARIOS {
        match scenario {
            DoesNotApply(reason) => assert!(!reason.is_empty()),
            Runs => {
                let args = ["server", "--url", &server.url(), "--scenario", name];
                let (said, is_content) = suite(&h, &modules, &args);
                assert!(is_content && said.contains(" 0 failed"), "{name}: {said}");
            }
        }
    }
}
