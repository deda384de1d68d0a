//! Runs the official conformance suite, `@modelcontextprotocol/conformance`, against our
//! own server with the suite's fixtures beside our tools.
//!
//! The fixtures exist in tests only. Their answers take the same way as all others:
//! through our checks, our gateway and, as far as our tools use it (text, pictures,
//! errors, progress), through the code that makes our own answers.

mod fixtures;

use super::WorkspaceServices;
use super::calls::Calls;
use super::handler::{Handler, Surface};
use super::http::routed;
use crate::http::{Access, App, Guard, router_with};
use crate::serve::{Lifetime, Listener, ServeOptions, serve_router};
use crate::service::{Limits, Service};
use fixtures::Fixtures;
use sessile_client::Launcher;
use sessile_store::{Sessions, UserState};
use sessile_testkit::needs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

enum Scenario {
    Runs,
    /// It needs an optional feature that our server does not have.
    DoesNotApply(&'static str),
}

use Scenario::{DoesNotApply, Runs};

const NO_ASKING: &str = "asks the client's model or user in the middle of a call. The answer \
comes with a request of its own, and a server that keeps nothing for a client cannot tell \
which call it is for";
const NO_REPLAY: &str = "resumes a stream by event id: nothing of a stream is kept, a client \
returns to a run by its number";

/// All scenarios of the suite, so that a new one is noticed.
const SCENARIOS: [(&str, Scenario); 32] = [
    ("server-initialize", Runs),
    ("logging-set-level", Runs),
    ("ping", Runs),
    ("completion-complete", Runs),
    ("tools-list", Runs),
    ("tools-call-simple-text", Runs),
    ("tools-call-image", Runs),
    ("tools-call-audio", Runs),
    ("tools-call-embedded-resource", Runs),
    ("tools-call-mixed-content", Runs),
    ("tools-call-with-logging", Runs),
    ("tools-call-error", Runs),
    ("tools-call-with-progress", Runs),
    ("tools-call-sampling", DoesNotApply(NO_ASKING)),
    ("tools-call-elicitation", DoesNotApply(NO_ASKING)),
    ("json-schema-2020-12", Runs),
    ("elicitation-sep1034-defaults", DoesNotApply(NO_ASKING)),
    ("server-sse-polling", DoesNotApply(NO_REPLAY)),
    ("server-sse-multiple-streams", Runs),
    ("elicitation-sep1330-enums", DoesNotApply(NO_ASKING)),
    ("resources-list", Runs),
    ("resources-read-text", Runs),
    ("resources-read-binary", Runs),
    ("resources-templates-read", Runs),
    ("resources-subscribe", Runs),
    ("resources-unsubscribe", Runs),
    ("prompts-list", Runs),
    ("prompts-get-simple", Runs),
    ("prompts-get-with-args", Runs),
    ("prompts-get-embedded-resource", Runs),
    ("prompts-get-with-image", Runs),
    ("dns-rebinding-protection", Runs),
];

/// The suite's program, and a folder that it may write to.
struct Suite {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Suite {
    /// Runs the suite; returns its output and whether it passed.
    fn run(&self, args: &[&str]) -> (String, bool) {
        let mut command = Command::new("node");
        command.arg(&self.program).args(args).current_dir(&self.folder).stdin(Stdio::null());
        let output = command.output().expect("the suite starts");
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (said.concat(), output.status.success())
    }

    fn scenarios(&self) -> Vec<String> {
        let (listed, _) = self.run(&["list"]);
        let servers = listed.split("Client scenarios").next().unwrap_or_default();
        let names = servers.lines().filter_map(|line| line.trim().strip_prefix("- "));
        names.map(str::to_owned).collect()
    }
}

/// Serves without sessions and without tokens: the suite sends none.
async fn serve(root: &Path, listener: TcpListener) {
    let user = UserState::at(root.join("state"));
    let sessions = Sessions::at(root.join(".sessions"), user.clone());
    let launcher = Launcher::new(PathBuf::from("/nonexistent"), Vec::new(), user);
    let service = Service::new(sessions, launcher, &[root.to_owned()], Limits::default());
    let service = Arc::new(service.expect("a service"));
    let guard = Guard { access: Access::Anybody, hosts: vec![], origins: vec![], scheme: "http" };
    let wait = Duration::from_secs(50);
    let app = App { service: service.clone(), guard: Arc::new(guard), mcp_wait: wait };
    let calls = Arc::new(Calls::default());
    let home = Arc::new(WorkspaceServices::one(service.clone()));
    let (turns, surface) = (Arc::default(), Surface::Http);
    let ours = Handler { home, calls: calls.clone(), turns, wait, surface };
    let mcp = routed(Fixtures { ours }, calls, service.limits().body);
    let options = ServeOptions {
        listener: Listener::Network(listener),
        lifetime: Lifetime::Always,
        tls: None,
        connections: 64,
        request_timeout: Duration::from_secs(60),
    };
    let router = router_with(app, mcp, options.request_timeout);
    serve_router(service, router, options, std::future::pending()).await;
}

/// Multi-threaded: this thread blocks until the suite ends.
#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_is_content() {
    let Some(modules) = needs::installed("SESSILE_TEST_MCP_NODE") else { return };
    let program = modules.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let suite = Suite { program, folder: tempfile::tempdir().expect("a folder") };
    let known: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
    assert_eq!(suite.scenarios(), known, "each is run, or has a reason not to be");

    let root = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let place = root.path().to_owned();
    tokio::spawn(async move { serve(&place, listener).await });

    for (name, scenario) in &SCENARIOS {
        match scenario {
            DoesNotApply(reason) => assert!(!reason.is_empty()),
            Runs => {
                let (said, is_content) = suite.run(&["server", "--url", &url, "--scenario", name]);
                assert!(is_content && said.contains(" 0 failed"), "{name}: {said}");
            }
        }
    }
}
