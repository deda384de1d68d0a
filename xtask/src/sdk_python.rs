//! The tests of the Python SDK: generated files, types, behaviour and examples.
//!
//! They run with a Python that has the frameworks that the SDK has tools for. Most run again
//! with the oldest Python that the SDK supports, if it is installed.

use crate::{clients, run, testing::SkippedTests, tools};

const FOLDER: &str = "sdk/python";

/// Packages that the tests need besides the SDK.
pub(crate) const PACKAGES: &[&str] = &[
    "httpx==0.28.1",
    "pytest==9.2.0",
    "pytest-xdist==3.8.0",
    "mypy==2.4.1",
    "pyright==1.1.414",
    "ipython==9.18.1",
    "openai==3.49.0",
    "openai-agents==0.24.0",
    "anthropic==2.8.0",
    "langchain-core==1.7.2",
    "pydantic-ai-slim==2.66.0",
    "smolagents==1.26.0",
    // smolagents wants it in the session of an agent, and would install it there.
    "numpy==2.4.6",
];

/// The variable with the Python that has these packages.
pub(crate) const PYTHON: &str = "SESSILE_TEST_SDK_PYTHON";

/// Packages for the oldest Python, without frameworks, which require newer ones.
const OLDEST: &str = "python3.9";
const OLDEST_PACKAGES: &[&str] = &["httpx==0.28.1", "pytest==8.4.2", "pytest-xdist==3.8.0"];

/// Packages that users of the SDK have.
const BENCH_PACKAGES: &[&str] = &["httpx==0.28.1"];

/// Tests that run with one Python only: the examples of the documentation, and a server
/// under load.
const ONCE: &[&str] = &["test_docstrings.py", "test_load.py", "test_pages.py"];

/// Number of processes for the tests, which mostly wait.
const WORKERS: &str = "4";

pub(crate) fn test(list: &SkippedTests, env: &[(&str, &str)]) -> Vec<anyhow::Error> {
    let Some((_, python)) = env.iter().find(|(name, _)| *name == PYTHON) else {
        let missing = list.add("the Python SDK: its packages are not installed");
        return missing.err().into_iter().collect();
    };
    let mut failures = Vec::new();
    let (config, source) = (format!("{FOLDER}/pyproject.toml"), format!("{FOLDER}/src"));
    let types = ["-m", "mypy", "--config-file", &config, &source];
    let types_again = ["-m", "pyright", "--pythonpath", python, "--project", FOLDER];
    let generated = [&format!("{FOLDER}/scripts/make_sync.py"), "--check"];
    for args in [&generated[..], &types, &types_again] {
        failures.extend(run::at_once(python, args, &[]).err());
    }
    let path: Vec<_> = env.iter().copied().filter(|(name, _)| *name == "PATH").collect();
    let frameworks = [&path[..], &[("SESSILE_TEST_FRAMEWORKS", "1")]].concat();
    failures.extend(pytest(python, &[], &frameworks).err());
    match oldest() {
        Some(python) => failures.extend(pytest(&python, ONCE, &path).err()),
        None => {
            failures.extend(list.add(&format!("the SDK with {OLDEST}: not installed")).err());
        }
    }
    failures
}

/// Runs all tests except those in these files.
fn pytest(python: &str, without: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let binary = run::target().join("debug/sessile").display().to_string();
    let source = run::root().join(FOLDER).join("src").display().to_string();
    let env = [env, &[("SESSILE_BIN", binary.as_str()), ("PYTHONPATH", &source)]].concat();
    let tests = format!("{FOLDER}/tests");
    let ignored: Vec<String> =
        without.iter().map(|file| format!("--ignore={tests}/{file}")).collect();
    let mut args =
        vec!["-B", "-m", "pytest", "-n", WORKERS, "--dist", "worksteal", "--rootdir", FOLDER];
    args.extend(ignored.iter().map(String::as_str));
    args.push(&tests);
    run::at_once(python, &args, &env)
}

/// Measures a warm call through the SDK beside plain HTTP, with the release binary.
pub(crate) fn bench() -> anyhow::Result<()> {
    let folder = run::target().join("mcp-clients/sdk-python-bench");
    let python = clients::python_environment(&folder, "python3", BENCH_PACKAGES)?;
    let binary = run::target().join("release/sessile").display().to_string();
    let source = run::root().join(FOLDER).join("src").display().to_string();
    let env = [("SESSILE_BIN", binary.as_str()), ("PYTHONPATH", &source)];
    println!("\nthrough the Python SDK");
    run::with_env(&python, &[&format!("{FOLDER}/bench/warm.py")], &env)
}

/// Makes an environment for the oldest Python, if there is one.
fn oldest() -> Option<String> {
    let interpreter = tools::python(OLDEST)?;
    let folder = run::target().join("mcp-clients/sdk-python-oldest");
    match clients::python_environment(&folder, &interpreter, OLDEST_PACKAGES) {
        Ok(python) => Some(python),
        Err(error) => {
            eprintln!("NOT AVAILABLE: {OLDEST} with {} ({error:#})", OLDEST_PACKAGES.join(" "));
            None
        }
    }
}
