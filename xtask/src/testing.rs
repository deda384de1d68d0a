//! `cargo xtask test`: runs all tests, and lists the skipped ones.
//!
//! In CI (`CI=true`) everything that the tests need has to be available. On a developer's
//! machine, tests without their programs are skipped by name, and counted at the end.

use crate::run::{Output, TestExecutable};
use crate::{clients, run, sdk_python, sdk_typescript, tools};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};

const DRIVERS: &str = "crates/keeper/tests/drivers";

/// The variable with the program that interprets the captures of shells.
const INTERPRET: &str = "SESSILE_TEST_INTERPRET";

/// The shells whose drivers are tested, and the test files.
const SHELLS: &[(&str, &str)] =
    &[("bash", "test_bash.py"), ("dash", "test_sh.py"), ("zsh", "test_zsh.py")];

/// Number of Node test files that run at once; they mostly wait.
const NODE_FILES_AT_ONCE: &str = "--test-concurrency=3";

pub(crate) fn test() -> anyhow::Result<()> {
    let list = SkippedTests::new(&run::target().join("tests-passed-over"))?;
    // Installing waits for the network, and compiling needs the CPU.
    let (compiled, installed) = std::thread::scope(|scope| {
        let compiling = scope.spawn(TestExecutable::all);
        let installed = install();
        (compiling.join(), installed)
    });
    let executables = compiled.map_err(|_| anyhow::anyhow!("cargo could not be waited for"))??;
    let mut env = installed?;
    env.push(("SESSILE_TEST_PASSED_OVER", list.0.display().to_string()));
    env.push(("RUST_TEST_THREADS", threads().to_string()));
    env.push((INTERPRET, run::example("interpret")?));
    env.extend(tools::path_to_python().map(|path| ("PATH", path)));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let failures = std::thread::scope(|scope| {
        let beside = [
            ("drivers", scope.spawn(|| drivers(&list, &env))),
            ("the TypeScript SDK", scope.spawn(|| sdk_typescript::test(&list, &env))),
            ("the Python SDK", scope.spawn(|| sdk_python::test(&list, &env))),
        ];
        let mut failures: Vec<anyhow::Error> = rust(&executables, &env).err().into_iter().collect();
        for (what, tests) in beside {
            match tests.join() {
                Ok(found) => failures.extend(found),
                Err(_) => {
                    failures.push(anyhow::anyhow!("the tests of {what} could not be waited for"));
                }
            }
        }
        failures
    });
    let failures = retry(failures, &env);
    list.tell()?;
    if let Some(first) = failures.first() {
        for failure in &failures {
            eprintln!("FAILED: {failure:#}");
        }
        bail!("{} of the parts failed, the first was: {first:#}", failures.len());
    }
    Ok(())
}

/// With more failures than this, they are not tried again.
const MOST_AGAIN: usize = 10;

/// Tests on real processes that take 20 seconds and more, mostly waiting: part of their
/// names. They begin at once, beside the others. In their turn, by the alphabet, some would
/// begin last, and nothing else would be left to do meanwhile.
const LONG: &[&str] = &[
    "agents::stores::an_object_store_that_is_down_",
    "saving::durable::a_store_that_is_down_",
    "saving::moving::whoever_had_it_finds_out_",
    "surfaces::http::fuzz::",
    "surfaces::http::silent::",
];

/// Runs all tests in Rust. Those on real processes take most of the time; the others run
/// beside them, one executable after the other.
fn rust(executables: &[TestExecutable], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let is_real = |executable: &&TestExecutable| executable.is_of_real_processes();
    let (real, others): (Vec<_>, Vec<_>) = executables.iter().partition(is_real);
    ensure!(
        real.len() == 1 && !others.is_empty(),
        "cargo has not built the tests: {executables:?}"
    );
    let run_all = |executables: &[&TestExecutable], args: &[&str], output| {
        executables.iter().map(|tests| tests.run(args, env, output)).collect::<Vec<_>>()
    };
    let rest: Vec<&str> = LONG.iter().flat_map(|name| ["--skip", name]).collect();
    let outcomes = std::thread::scope(|scope| {
        let beside = [
            scope.spawn(|| run_all(&real, LONG, Output::AtEnd)),
            scope.spawn(|| run_all(&others, &[], Output::AtEnd)),
        ];
        let mut outcomes = run_all(&real, &rest, Output::Live);
        for tests in beside {
            match tests.join() {
                Ok(others) => outcomes.extend(others),
                Err(_) => outcomes.push(Err(anyhow::anyhow!("tests could not be waited for"))),
            }
        }
        outcomes
    });
    let mut is_success = true;
    let mut failed = Vec::new();
    for outcome in outcomes {
        let (status, names) = outcome?;
        is_success &= status.success();
        failed.extend(names);
    }
    if is_success { Ok(()) } else { Err(FailedTests(failed).into()) }
}

/// Repeats tests in Rust by name.
fn retry_rust(names: &[String], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let (status, failed) = run::cargo_tests(names, env)?;
    if status.success() { Ok(()) } else { Err(FailedTests(failed).into()) }
}

/// Failed tests in Rust, by name.
#[derive(Debug, thiserror::Error)]
#[error("cargo test failed: {}", .0.join(", "))]
struct FailedTests(Vec<String>);

/// Repeats failed tests once with nothing else running, to distinguish tests that fail on a
/// busy machine from those that always fail. Either is a bug; the former does not stop
/// others from working.
fn retry(failures: Vec<anyhow::Error>, env: &[(&str, &str)]) -> Vec<anyhow::Error> {
    let mut left = Vec::new();
    let mut unsteady = Vec::new();
    for failure in failures {
        let tried = match (failure.downcast_ref(), failure.downcast_ref::<run::Unsuccessful>()) {
            (Some(FailedTests(names)), _) if (1..=MOST_AGAIN).contains(&names.len()) => {
                retry_rust(names, env)
            }
            (_, Some(unsuccessful)) => unsuccessful.call.make(),
            (Some(_) | None, None) => {
                left.push(failure);
                continue;
            }
        };
        match tried {
            Ok(()) => unsteady.push(failure),
            Err(error) => left.push(error),
        }
    }
    for failure in unsteady {
        eprintln!("UNSTEADY, to be mended: beside others, {failure:#}; alone it passed");
    }
    left
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Four per CPU: most tests wait most of the time.
fn threads() -> usize {
    4 * std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

/// Installs missing programs, and returns the variables with their paths for the tests.
fn install() -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut missing = tools::prepare();
    let mut clients = clients::prepare(&mut missing);
    clients.extend(sdk_typescript::prepare(&mut missing));
    for what in &missing {
        eprintln!("NOT AVAILABLE: {what}");
    }
    ensure!(missing.is_empty() || !is_ci(), "in CI nothing may be missing: {}", missing.join(", "));
    Ok(clients)
}

/// Tests the parts that run inside interpreters, in their own languages, one after the
/// other. Their output is shown when it is complete.
fn drivers(list: &SkippedTests, env: &[(&str, &str)]) -> Vec<anyhow::Error> {
    let mut results = Vec::new();
    let call = run::at_once;
    let discover = ["-B", "-m", "unittest", "discover", "-s"];
    let folder = format!("{DRIVERS}/shell");
    for (shell, file) in SHELLS {
        if tools::has(shell) {
            let args = [&discover[..], &[&folder, "-p", file]].concat();
            let interpret = env.iter().copied().filter(|(name, _)| *name == INTERPRET);
            results.push(call("python3", &args, &interpret.collect::<Vec<_>>()));
        } else {
            results.push(list.add(&format!("{file}: {shell} is not installed")));
        }
    }
    let python = format!("{DRIVERS}/python");
    for name in std::iter::once("python3").chain(tools::OTHER_PYTHONS) {
        match tools::python(name) {
            Some(interpreter) => {
                let env = [("SESSILE_TEST_PYTHON", interpreter.as_str())];
                results.push(call("python3", &[&discover[..], &[&python]].concat(), &env));
            }
            None => results.push(list.add(&format!("the driver of {name}: not installed"))),
        }
    }
    match env.iter().find(|(name, _)| *name == clients::LIBRARIES) {
        Some((_, interpreter)) => {
            let env = [("SESSILE_TEST_PYTHON", *interpreter)];
            let args = [&discover[..], &[&python, "-p", "real_*.py"]].concat();
            results.push(call("python3", &args, &env));
        }
        None => {
            results.push(list.add("real_libraries.py: Python's libraries are not installed"));
        }
    }
    if tools::has("node") {
        match run::files(&format!("{DRIVERS}/node"), ".test.js") {
            Ok(tests) => {
                let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
                let args = [&["--test", NODE_FILES_AT_ONCE], &tests[..]].concat();
                results.push(call("node", &args, &[]));
            }
            Err(error) => results.push(Err(error)),
        }
    } else {
        results.push(list.add("the driver of Node: node is not installed"));
    }
    results.into_iter().filter_map(Result::err).collect()
}

/// The file that lists skipped tests.
pub(crate) struct SkippedTests(PathBuf);

impl SkippedTests {
    fn new(path: &Path) -> anyhow::Result<Self> {
        let path = path.to_path_buf();
        std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }

    /// Records that something is not tested; an error in CI.
    pub(crate) fn add(&self, what: &str) -> anyhow::Result<()> {
        use std::io::Write;
        ensure!(!is_ci(), "in CI nothing may be missing: {what}");
        let file = std::fs::File::options().append(true).open(&self.0);
        let line = format!("passed over: {what}\n");
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            eprintln!("{line}({error})");
        }
        Ok(())
    }

    fn tell(&self) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.0)?;
        if !text.is_empty() {
            eprint!("\n{text}{} were passed over\n", text.lines().count());
        }
        Ok(())
    }
}
